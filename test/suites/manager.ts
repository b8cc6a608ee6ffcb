import { describe } from 'vitest';
import type { OpenKeys } from './keys-api/store.ts';
import { acquire } from './manager/acquire.ts';
import { asyncContext } from './manager/async-context.ts';
import { available } from './manager/available.ts';
import { costs } from './manager/costs.ts';
import { election } from './manager/election.ts';
import { holdTimes } from './manager/hold-times.ts';
import { holders } from './manager/holder.ts';
import { identities } from './manager/identity.ts';
import { labels } from './manager/label.ts';
import { limit } from './manager/limit.ts';
import { localQueue } from './manager/local-queue.ts';
import { loss } from './manager/loss.ts';
import { type ManagerTest, managerTest } from './manager/managers.ts';
import { modes } from './manager/modes.ts';
import { outcomes } from './manager/outcomes.ts';
import { query } from './manager/query.ts';
import { reentrance } from './manager/reentrance.ts';
import { release } from './manager/release.ts';
import { requests } from './manager/requests.ts';
import { requeueing } from './manager/requeueing.ts';
import { several } from './manager/several.ts';
import { tracing } from './manager/tracing.ts';
import { onV2 } from './manager/v2.ts';
import { waiting } from './manager/waiting.ts';
import { withLock } from './manager/with-lock.ts';
import type { OpenClient } from './stores/store-client.ts';
import { v2StoreClient } from './stores/v2-store-client.ts';

type Part = (test: ManagerTest) => void;

/** The parts in three groups that take about as long, for files that run side by side. */
const GROUPS = {
  waits: [requests, available, waiting, requeueing, loss, holdTimes],
  kinds: [acquire, modes, limit, localQueue, identities, labels, holders],
  others: [reentrance, query, release, several, election, withLock, tracing, outcomes, asyncContext],
} satisfies Readonly<Record<string, readonly Part[]>>;
type Group = keyof typeof GROUPS;

/** What only these stores guarantee. */
const ON_V2: readonly Part[] = [costs((event) => event !== undefined), onV2];
const ON_V3: readonly Part[] = [costs(() => true)];

const partsOf = (group: Group, special: readonly Part[]): readonly Part[] =>
  group === 'others' ? [...GROUPS.others, ...special] : GROUPS[group];

/**
 * Tests what `LockManager` guarantees on any store.
 * @param open opens another client of the same store; the store may have other users
 * @param parts a group of the parts, or some of them
 */
export function managerContract(name: string, open: OpenClient, parts: Group | readonly Part[]): void {
  const test = managerTest(open);
  describe(`LockManager on ${name}:`, () => {
    for (const part of typeof parts === 'string' ? GROUPS[parts] : parts) part(test);
  });
}

/** Tests a group of the parts on a store behind a `KeysApi`, and what only etcd v2 guarantees. */
export function managerContractOnV2(name: string, group: Group, open: OpenKeys): void {
  managerContract(name, async () => v2StoreClient(await open()), partsOf(group, ON_V2));
}

/** Tests a group of the parts on etcd v3, and what only that guarantees. */
export function managerContractOnV3(name: string, group: Group, open: OpenClient): void {
  managerContract(name, open, partsOf(group, ON_V3));
}
