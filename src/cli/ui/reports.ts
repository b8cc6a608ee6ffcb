/** What viewers can have examined: the findings of `doctor`, and those of `doctor --moving`. */
import type { StoreApi } from '../../client.ts';
import type { Surveyor } from '../../recipe/survey.ts';
import { type StoreOptions, withFixedPassword } from '../connection.ts';
import { type Access, accessBy } from '../doctor/access.ts';
import { examine, examineMove } from '../doctor/examine.ts';
import type { Facts, Finding } from '../doctor/facts.ts';
import { judge } from '../doctor/judge.ts';
import type { Client, Kinds } from '../doctor/moving/kinds.ts';
import { cut, LONGEST_KEY, LONGEST_TEXT } from './encode.ts';
import { OnDemand } from './on-demand.ts';
import type { ShownChecks, ShownClients, ShownFinding, ShownMove } from './shapes.ts';

/** JSON that is made when a viewer asks for it, or why it cannot be made. */
export type Report = OnDemand<string> | string;

export interface Reports {
  /** A `ShownChecks`. */
  readonly checks: Report;
  /** A `ShownMove`. */
  readonly move: Report;
}

/** Milliseconds for which a report is used for all who ask. */
const FRESH_FOR = 60_000;
/** Number of clients of each kind, of findings, and of characters of a finding that are sent. */
const MOST_CLIENTS = 500;
const MOST_FINDINGS = 1000;
const LONGEST = 5000;

/** Checks the cluster once for each store, as `doctor` does, but creates no test keys. */
export const checksReport = (stores: readonly StoreOptions[]): Report =>
  madeOnDemand(async (): Promise<Omit<ShownChecks, keyof Made>> => {
    const checked: ShownChecks['stores'][number][] = [];
    for (const each of stores) {
      const options = await withFixedPassword(each);
      const facts: Facts = await examine(options, accessBy(options), { testKeys: false });
      checked.push({ api: options.api ?? 'v2', findings: findingsOf(judge(facts)) });
    }
    return { stores: checked };
  });

/** Watches both stores for some seconds, as `doctor --moving` does. */
export const moveReport = (access: Access, stores: Readonly<Record<StoreApi, Surveyor>>): Report =>
  madeOnDemand(async (): Promise<Omit<ShownMove, keyof Made>> => {
    const { kinds, findings } = await examineMove(access, stores);
    return { clients: kinds ? clientsOf(kinds) : null, findings: findingsOf(findings) };
  });

type Made = Pick<ShownMove, 'madeAt' | 'took'>;

function madeOnDemand(make: () => Promise<object>): Report {
  return new OnDemand(async () => {
    const beganAt = Date.now();
    const report = await make();
    const made: Made = { madeAt: Date.now(), took: (Date.now() - beganAt) / 1000 };
    return JSON.stringify({ ...made, ...report });
  }, FRESH_FOR);
}

const findingsOf = (findings: readonly Finding[]): ShownFinding[] =>
  findings.slice(0, MOST_FINDINGS).map(({ level, about, endpoint = null, text, advice = null }) => ({
    level,
    about,
    endpoint,
    text: cut(text, LONGEST),
    advice: advice === null ? null : cut(advice, LONGEST),
  }));

const clientsOf = ({ v2, both, either, v3 }: Kinds): ShownClients => ({
  v2: shown(v2),
  both: shown(both),
  either: shown(either),
  v3: shown(v3),
});

/** A client may use several locks. */
const shown = (clients: readonly Client[]): ShownClients['v2'] => ({
  count: new Set(clients.map(({ client }) => client)).size,
  uses: clients
    .slice(0, MOST_CLIENTS)
    .map(({ name, client }) => ({ lock: cut(name, LONGEST_KEY), client: cut(client, LONGEST_TEXT) })),
});
