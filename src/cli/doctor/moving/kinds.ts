import { clientValue } from '../../../recipe/entries/bridged-value.ts';
import { namesOf, parseValue } from '../../../recipe/entries/entry-value.ts';
import { lastPart, type ParsedEntry } from '../../../recipe/survey.ts';
import { type EntryOnV2, type EntryOnV3, idOf, type Sightings } from './sightings.ts';

/** A client that has used a lock, as the report shows it. */
export interface Client {
  /** The lock. */
  readonly name: string;
  /** Its identity or label, or else the uuid of its entry. */
  readonly client: string;
}

/**
 * The clients that have used the locks, by kind: one for each lock and client. A client that neither holds nor waits has no entry, and
 * is not found.
 */
export interface Kinds {
  /** Clients of kind v2: they have worked while they held on v2 alone. */
  readonly v2: readonly Client[];
  /** Clients of kind both: they had an entry in both stores, or use a bridge to both. */
  readonly both: readonly Client[];
  /** Clients of kind v2 or both: all others that had an entry on v2. */
  readonly either: readonly Client[];
  /** Clients of kind v3: they had an entry on v3 alone. */
  readonly v3: readonly Client[];
}

/** Until when the stores were watched, and since when. */
export interface Watched {
  /**
   * An entry that appears on v2 later counts only if it shows its kind, or has held alone until the end. Milliseconds on the monotonic
   * clock.
   */
  readonly newUntil: number;
  /** When the watch has ended; undefined before. */
  readonly endedAt?: number;
  /** Whether v2 was watched when this revision of v3 was written, so that an entry on v2 of the same client was seen. */
  readonly covers: (name: string, revision: number) => boolean;
}

/**
 * Milliseconds of a hold on v2 alone that show a client of kind v2. A client of kind both enters v3 as soon as it notices that it holds
 * on v2; if it gives up at that very moment, it was the holder for a shorter time.
 */
const ALONE = 30;
/**
 * The same for a hold whose beginning or end was not seen. A client of kind both leaves v2 right after v3, and enters v3 right after it
 * holds on v2.
 */
const ALONE_IN_PART = 1000;

/**
 * So many holds on v2 alone show kind v2 also if the client has shown kind both. Fewer may be holds that a client of kind both has given
 * up because v3 did not answer.
 */
const MANY_ALONE = 3;

type Kind = keyof Kinds;

/** Returns the clients by kind. */
export function kindsIn(sightings: Sightings, watched: Watched): Kinds {
  const seen = withoutFailed([...seenOnV2(sightings, watched), ...seenOnV3(sightings, watched)]);
  const proven = new Map<string, Set<Kind>>();
  for (const { client, kind } of seen)
    if (kind !== 'either') proven.set(client, (proven.get(client) ?? new Set()).add(kind));
  const found: Record<Kind, Map<string, Client>> = { v2: new Map(), both: new Map(), either: new Map(), v3: new Map() };
  for (const { name, client, kind, isOneProcess } of seen) {
    const known = kind === 'either' && isOneProcess ? proven.get(client) : undefined;
    const shown = known?.has('v2') ? 'v2' : known?.has('both') ? 'both' : kind;
    found[shown].set(idOfClient({ name, client }), { name, client });
  }
  for (const id of found.v2.keys()) found.either.delete(id);
  const { v2, both, either, v3 } = found;
  return { v2: [...v2.values()], both: [...both.values()], either: [...either.values()], v3: [...v3.values()] };
}

/** Whether a longer watch may show the kind of a client that is `either` so far: its entry is still on v2. */
export function mayDecide(sightings: Sightings, watched: Watched): boolean {
  const open = new Set(kindsIn(sightings, watched).either.map(idOfClient));
  const seen = seenOnV2(sightings, watched).filter(({ kind, isGone }) => kind === 'either' && !isGone);
  return seen.some((client) => open.has(idOfClient(client)));
}

/** Leaves the kind open of a few holds on v2 alone, if their client has shown kind both. */
function withoutFailed(seen: readonly Seen[]): Seen[] {
  const both = new Set(seen.flatMap(({ client, kind }) => (kind === 'both' ? [client] : [])));
  const alone = new Map<string, number>();
  for (const { client, kind } of seen) if (kind === 'v2') alone.set(client, (alone.get(client) ?? 0) + 1);
  const isOpen = ({ client, kind }: Seen): boolean =>
    kind === 'v2' && both.has(client) && (alone.get(client) ?? 0) < MANY_ALONE;
  return seen.map((one) => (isOpen(one) ? { ...one, kind: 'either' } : one));
}

const idOfClient = ({ name, client }: Client): string => JSON.stringify([name, client]);

interface Seen extends Client {
  readonly kind: Kind;
  readonly isGone: boolean;
  /** Whether all entries with this client are of one process, as far as a label can show it. */
  readonly isOneProcess: boolean;
}

/** The default label, `<host>:<pid>`. Several processes may have the same label if a user chose it. */
const OF_ONE_PROCESS = /^[^/]+:\d+$/;

function seen({ name, key, value }: ParsedEntry, kind: Kind, isGone: boolean): Seen {
  const parts = parseValue(clientValue(value));
  const { identity, label, uuid } = parts;
  const client = uuid === '' ? lastPart(key) : namesOf(parts)[0];
  const isOneProcess = identity !== undefined || (label !== undefined && OF_ONE_PROCESS.test(label));
  return { name, client, kind, isGone, isOneProcess };
}

const seenOnV2 = (sightings: Sightings, { newUntil, endedAt }: Watched): Seen[] =>
  [...sightings.onV2.values()].flatMap((on) => {
    const kind = kindOnV2(sightings, on);
    const isLate = kind === 'either' && on.seenAt > newUntil && !holdsAt(endedAt, on);
    return isLate ? [] : [seen(on.entry, kind, on.isGone)];
  });

/** Whether the entry has held alone for so long at the end of the watch that it is none of a client of kind both at work. */
const holdsAt = (endedAt: number | undefined, { hold, isGone }: EntryOnV2): boolean =>
  endedAt !== undefined && hold !== undefined && !isGone && endedAt - hold.since >= ALONE_IN_PART;

function kindOnV2({ bridged, onV3 }: Sightings, { entry, hold }: EntryOnV2): Kind {
  const id = idOf(entry);
  if (bridged.has(id) || onV3.has(id)) return 'both';
  if (!hold) return 'either';
  if (hold.isRenewed) return 'v2';
  if (hold.releasedAt === undefined || hold.mayBeEvicted) return 'either';
  const alone = hold.releasedAt - hold.since;
  return alone < (hold.isWhole ? ALONE : ALONE_IN_PART) ? 'either' : 'v2';
}

function seenOnV3({ onV2, onV3, bridged }: Sightings, { covers }: Watched): Seen[] {
  const idsOnV2 = new Set([...onV2.values()].map(({ entry }) => idOf(entry)));
  return [...onV3].flatMap(([id, on]) => {
    if (bridged.has(id)) return [seen(on.entry, 'both', on.isGone)];
    return idsOnV2.has(id) || !isOfV3(on, covers) ? [] : [seen(on.entry, 'v3', on.isGone)];
  });
}

/** Whether an entry on v3 alone is one of kind v3. A client of kind both that was killed leaves one only for a short time. */
const isOfV3 = ({ entry, created, isGone }: EntryOnV3, covers: Watched['covers']): boolean =>
  created === undefined ? !isGone : covers(entry.name, created);
