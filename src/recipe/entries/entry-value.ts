import { clientValue } from './bridged-value.ts';

/** How a lock is held: alone, or beside others that share it. */
export type LockMode = 'exclusive' | 'shared';

/**
 * The parts of an entry's value, `[shared:][id:<identity>:]<uuid>[@<label>[@<published>]]`. Entries of python-etcd and of `Lock`
 * have only a uuid as value, so they are exclusive. The published text of a candidate in an election is read by {@link publishedIn}.
 *
 * The label and the published text are percent-encoded, so the value has no ":" after the uuid. Versions of this package without
 * them therefore read the same mode and identity from it. Only with a published text may the label be empty.
 */
export interface EntryValue {
  /** Whether the entry shares the lock. */
  readonly mode: LockMode;
  /** Names the process across restarts: an entry of an earlier process with the same identity may be evicted. */
  readonly identity: string | undefined;
  /** Says who made the entry, for people. No rule depends on it. */
  readonly label: string | undefined;
  /** Identifies the hold or the wait that made the entry. */
  readonly uuid: string;
}

/** The parts of the value of an entry that may be a candidate in an election. */
interface Candidate extends EntryValue {
  /** What the candidate publishes while it leads. */
  readonly published?: string | undefined;
}

const SHARED = 'shared:';
const IDENTIFIED = /^id:(.+):([^:]+)$/s;
/** Only a uuid made by this package has a label: any other text with "@" is a uuid that a client chose. */
const LABELLED = /^([0-9a-f]{32})@(.+)$/s;
/** Two percent-encoded texts: any other text with "@" is a label that another program has encoded differently. */
const PUBLISHED = /^([\w.!~*'()%-]*)@([\w.!~*'()%-]+)$/;

export const isShared = (value: string): boolean => value.startsWith(SHARED);

export function parseValue(value: string): EntryValue {
  const { published: _, ...parts } = parsed(value);
  return parts;
}

/** Returns what the candidate that made the entry publishes while it leads; undefined if that is nothing. */
export const publishedIn = (value: string): string | undefined => parsed(value).published;

function parsed(value: string): Candidate {
  const mode = isShared(value) ? 'shared' : 'exclusive';
  const rest = isShared(value) ? value.slice(SHARED.length) : value;
  const [, identity, last = rest] = IDENTIFIED.exec(rest) ?? [];
  const [, uuid = last, texts = ''] = LABELLED.exec(last) ?? [];
  const written = clientValue(texts);
  const [, label = written, published] = PUBLISHED.exec(written) ?? [];
  // What a bridge has added is shown as the end of the label.
  const shown = label + texts.slice(written.length);
  return { mode, identity, label: decoded(shown), uuid, published: decoded(published) };
}

/** @param value its identity, label and published text are well-formed Unicode and not empty */
export function formatValue({ mode, identity, label, uuid, published }: Candidate): string {
  const own = `${mode === 'shared' ? SHARED : ''}${identity === undefined ? '' : `id:${identity}:`}${uuid}`;
  if (published !== undefined) return `${own}@${encodeURIComponent(label ?? '')}@${encodeURIComponent(published)}`;
  return label === undefined ? own : `${own}@${encodeURIComponent(label)}`;
}

/** Returns the names of the client that made the entry, for people: its identity, its label and its uuid, if it has them. */
export function namesOf({ identity, label, uuid }: Omit<EntryValue, 'mode'>): readonly [string, ...string[]] {
  const [first = '(no value)', ...others] = [identity, label, uuid].flatMap((name) => name || []);
  return [first, ...others];
}

/** Decodes a text. One that another program has encoded differently is returned as it is. An empty one is none. */
function decoded(text = ''): string | undefined {
  try {
    return decodeURIComponent(text) || undefined;
  } catch {
    return text;
  }
}
