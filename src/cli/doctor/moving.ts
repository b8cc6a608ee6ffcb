/** What the two stores show of a move from etcd v2 to v3: docs/moving.md. */
import { setTimeout as sleep } from 'node:timers/promises';
import { show } from '../../checks.ts';
import { isBridged } from '../../recipe/entries/bridged-value.ts';
import { sharedIdOf } from '../../recipe/entries/entry.ts';
import { namesOf } from '../../recipe/entries/entry-value.ts';
import { holdersAmong } from '../../recipe/rules.ts';
import type { LockQueue, ParsedEntry, Surveyor } from '../../recipe/survey.ts';
import { isListed } from '../../v2/paths.ts';
import type { Finding } from './facts.ts';
import { findingFor, firstOf } from './findings/finding.ts';

/**
 * Number of reads of the stores, and milliseconds between them. One read is not enough: a client of kind both looks like one of
 * kind v2 for a moment, before it enters v3 and after it leaves v3.
 */
const READS = 3;
const PAUSE = 1000;

const finding = findingFor();

/** A client that has an entry, as the report shows it. */
export interface Client {
  /** The lock. */
  readonly name: string;
  /** Its identity or label, or else the uuid of its entry. */
  readonly client: string;
}

/** The clients that use the locks, by kind. A client that neither holds nor waits has no entry, and is not found. */
export interface Kinds {
  /** Clients of kind v2: they held on v2 alone in all reads. */
  readonly v2: readonly Client[];
  /** Clients of kind both: they had an entry in both stores in some read, or use a bridge to both. */
  readonly both: readonly Client[];
  /** Clients of kind v2 or both: all others that had an entry on v2. */
  readonly either: readonly Client[];
  /** Clients of kind v3: they had an entry on v3 alone in all reads. */
  readonly v3: readonly Client[];
}

/** Reads both stores several times, and returns the clients that their entries show, by kind. */
export async function kindsOf(v2: Surveyor, v3: Surveyor): Promise<Kinds> {
  const reads = [await readStores(v2, v3)];
  while (reads.length < READS) {
    await sleep(PAUSE);
    reads.push(await readStores(v2, v3));
  }
  const always = (group: keyof StoresRead) => reads.map((read) => read[group]).reduce(among);
  const ever = (group: keyof StoresRead) => new Map(reads.flatMap((read) => [...read[group]]));
  const [onlyV2, both, onlyV3] = [always('heldOnV2'), ever('onBoth'), always('onlyOnV3')];
  const either = [...ever('onV2')].filter(([id]) => !onlyV2.has(id) && !both.has(id));
  return { v2: clientsOf(onlyV2), both: clientsOf(both), either: clientsOf(new Map(either)), v3: clientsOf(onlyV3) };
}

/** Returns the findings on the clients of each kind, and on whether the next step of the move is safe. */
export function judgeMove({ v2, both, either, v3 }: Kinds): Finding[] {
  const onV3 = new Set(v3.map(({ name }) => name));
  const torn = v2.filter(({ name }) => onV3.has(name));
  return [
    ...seen('kind v2 (hold on v2 alone)', v2),
    ...seen('kind both (entry in both stores, or a bridge to both)', both),
    ...seen('kind v2 or both (entry on v2)', either),
    ...seen('kind v3 (entry on v3 alone)', v3),
    ...(torn.length > 0
      ? [
          finding(
            'fail',
            'moving',
            `clients of kind v2 and of kind v3 use the same locks: ${listOf(torn)}. A client of each can hold such a lock at the same time`,
            'stop the clients of one of the two kinds now, and restart them as kind both: see docs/moving.md',
          ),
        ]
      : [nextStep({ v2, both, either, v3 })]),
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

const seen = (kind: string, clients: readonly Client[]): Finding[] =>
  clients.length === 0 ? [] : [finding('ok', 'moving', `clients of ${kind}: ${clients.length} (${listOf(clients)})`)];

function nextStep({ v2, both, either, v3 }: Kinds): Finding {
  if (v2.length > 0)
    return finding(
      'warn',
      'moving',
      'step 1, from v2 to both, can begin or continue. Step 2 is not safe: some clients still use v2 alone',
      'restart these clients as kind both (see docs/moving.md), and then run this command again',
    );
  if (both.length + either.length > 0)
    return finding(
      'warn',
      'moving',
      `step 2, from both to v3, ${v3.length > 0 ? 'has begun' : 'is safe if no client uses v2 alone any more'}. v2 is still used`,
      'an idle client has no entry: also check in your process manager that all processes were restarted',
    );
  return finding(
    'ok',
    'moving',
    'no listed lock has an entry on v2 at the moment. You can switch v2 off when no idle client needs it. Check locks whose name ' +
      'has a part that begins with "_" with inspect: v2 does not list them',
  );
}

const listOf = (clients: readonly Client[]): string =>
  firstOf(clients.map(({ name, client }) => `${show(name)} by ${client}`));

/** Entries by an id that is the same for the entries of one client in both stores. */
type Entries = ReadonlyMap<string, ParsedEntry>;

/** What one read of the two stores shows. */
interface StoresRead {
  readonly onV2: Entries;
  /** Entries of clients that have one in both stores, and all entries created by a bridge to both. */
  readonly onBoth: Entries;
  /** Entries that hold on v2, of clients that have no entry on v3 and use no bridge to both. */
  readonly heldOnV2: Entries;
  readonly onlyOnV3: Entries;
}

async function readStores(v2: Surveyor, v3: Surveyor): Promise<StoresRead> {
  const { queues: listed } = await v2.locks('');
  const { queues: queuesOnV3 } = await v3.locks('');
  const queues = [...listed, ...(await unlistedQueues(v2, queuesOnV3))];
  const onV3 = byId(queuesOnV3.flatMap(({ entries }) => entries));
  const onV2 = byId(queues.flatMap(({ entries }) => entries));
  const held = byId(queues.flatMap(({ entries }) => holdersAmong(entries)));
  const bridged = byId([...onV2.values(), ...onV3.values()].filter(({ value }) => isBridged(value)));
  return {
    onV2,
    onBoth: new Map([...among(onV2, onV3), ...bridged]),
    heldOnV2: without(without(held, onV3), bridged),
    onlyOnV3: without(without(onV3, onV2), bridged),
  };
}

/** Reads from v2 the queues of these locks that a listing of v2 leaves out. */
function unlistedQueues(v2: Surveyor, queues: readonly LockQueue[]): Promise<LockQueue[]> {
  const names = queues.map(({ name }) => name).filter((name) => !isListed(name) && isValid(v2, name));
  return Promise.all(names.map(async (name) => (await v2.lock(name)).queue));
}

function isValid(store: Surveyor, name: string): boolean {
  try {
    store.checkName(name);
    return true;
  } catch {
    return false;
  }
}

const byId = (entries: readonly ParsedEntry[]): Entries => new Map(entries.map((entry) => [idOf(entry), entry]));

const idOf = (entry: ParsedEntry): string => JSON.stringify([entry.name, sharedIdOf(entry)]);

const among = (entries: Entries, others: Entries): Entries => new Map([...entries].filter(([id]) => others.has(id)));

const without = (entries: Entries, others: Entries): Entries => new Map([...entries].filter(([id]) => !others.has(id)));

const clientsOf = (entries: Entries): Client[] =>
  [...entries.values()].map((entry) => ({ name: entry.name, client: namesOf(entry)[0] }));
