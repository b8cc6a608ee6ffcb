/** What the clients that were seen mean for a move from etcd v2 to v3: docs/moving.md. */
import { show } from '../../../base/checks.ts';
import type { Finding } from '../facts.ts';
import { findingFor, firstOf } from '../findings/finding.ts';
import type { Client, Kinds } from './kinds.ts';

const finding = findingFor();

/** Returns the findings on the clients of each kind, and on whether the next step of the move is safe. */
export function judgeMove(kinds: Kinds): Finding[] {
  const { v2, both, either, v3 } = kinds;
  return [
    ...seen('kind v2 (hold on v2 alone)', v2),
    ...seen('kind both (entry in both stores, or a bridge to both)', both),
    ...seen('kind v2 or both (entry on v2)', either),
    ...seen('kind v3 (entry on v3 alone)', v3),
    nextStep(kinds),
  ];
}

/** Returns the finding for a cluster in which members run etcd 3.6 already, so that v2 must not be read. */
export const tooLate = (upgraded: readonly string[]): Finding =>
  finding(
    'fail',
    'moving',
    `etcd 3.6 runs at ${firstOf(upgraded)}, so the move must be over. doctor has not read v2: etcd 3.6 panics at quorum reads of it`,
    'no client of kind v2 or both may be left: see docs/moving.md',
  );

function seen(kind: string, clients: readonly Client[]): Finding[] {
  // A client may use several locks.
  const count = new Set(clients.map(({ client }) => client)).size;
  return count === 0 ? [] : [finding('ok', 'moving', `clients of ${kind}: ${count} (${listOf(clients)})`)];
}

function nextStep({ v2, both, either, v3 }: Kinds): Finding {
  const torn = alsoUsedBy(v3, v2);
  if (torn.length > 0)
    return finding(
      'fail',
      'moving',
      `clients of kind v2 and of kind v3 use the same locks: ${listOf(torn)}. A client of each can hold such a lock at the same time`,
      'stop the clients of one of the two kinds now, and restart them as kind both: see docs/moving.md',
    );
  const doubtful = alsoUsedBy(v3, either);
  if (doubtful.length > 0)
    return finding(
      'warn',
      'moving',
      `clients of kind v3 use the same locks as clients that may be of kind v2: ${listOf(doubtful)}. If they are, a client of each can ` +
        'hold such a lock at the same time',
      DECIDE,
    );
  if (v2.length > 0)
    return finding(
      'warn',
      'moving',
      'step 1, from v2 to both, can begin or continue. Step 2 is not safe: some clients still use v2 alone',
      'restart these clients as kind both (see docs/moving.md), and then run this command again',
    );
  if (either.length > 0)
    return finding(
      'warn',
      'moving',
      `it is not known whether step 2, from both to v3, ${v3.length > 0 ? 'was safe to begin' : 'is safe'}: some clients with an entry on v2 ` +
        'may be of kind v2',
      DECIDE,
    );
  if (both.length > 0)
    return finding(
      'warn',
      'moving',
      v3.length > 0
        ? 'step 2, from both to v3, has begun. v2 is still used'
        : 'no client of kind v2 was seen: step 2, from both to v3, can begin once no idle one is left. v2 is still used',
      'an idle client has no entry: also check in your process manager that all processes were restarted',
    );
  return finding(
    'ok',
    'moving',
    'no listed lock has had an entry on v2 while this command watched. You can switch v2 off when no idle client needs it. Check locks ' +
      'whose name has a part that begins with "_" with inspect: v2 does not list them',
  );
}

const DECIDE =
  'such a client only waited, held for less than a moment, did not renew its entry, or was killed. Check that it was restarted as kind ' +
  'both, or run this command again: see docs/moving.md';

/** Returns the clients that use a lock which one of the others uses, too. */
function alsoUsedBy(others: readonly Client[], clients: readonly Client[]): readonly Client[] {
  const names = new Set(others.map(({ name }) => name));
  return clients.filter(({ name }) => names.has(name));
}

const listOf = (clients: readonly Client[]): string =>
  firstOf(clients.map(({ name, client }) => `${show(name)} by ${client}`));
