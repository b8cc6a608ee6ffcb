import { comparableLine } from './comparable.ts';

interface Result {
  readonly header: { readonly revision?: string };
  readonly watch_id?: string;
  readonly created?: boolean;
  readonly canceled?: boolean;
  readonly compact_revision?: string;
  readonly events?: readonly { readonly kv: { readonly mod_revision: string } }[];
}

/** What a stream of watches has received, in comparable form. */
export interface Transcript {
  /** The answers to requests, in order. */
  readonly answers: readonly string[];
  /** The events of each watch, however etcd has grouped them. */
  readonly events: ReadonlyMap<string, readonly string[]>;
  /** The watches that ended because their events were compacted, and the reports of progress: they may overtake answers. */
  readonly others: readonly string[];
}

/** @param last revision of the last events that count */
export function transcriptOf(lines: readonly string[], last = Number.POSITIVE_INFINITY): Transcript {
  const transcript = { answers: [] as string[], events: new Map<string, string[]>(), others: [] as string[] };
  for (const line of lines) {
    const { result } = JSON.parse(line) as { result?: Result };
    const isAnswer = result?.created || (result?.canceled && result.compact_revision === undefined);
    if (result?.events) append(transcript.events, result, last);
    else if (result === undefined || isAnswer) transcript.answers.push(comparableLine(line));
    else transcript.others.push(comparableLine(line));
  }
  transcript.others.sort();
  return { ...transcript, events: new Map([...transcript.events].sort(([one], [other]) => (one < other ? -1 : 1))) };
}

function append(events: Map<string, string[]>, { watch_id: id = '0', events: added = [] }: Result, last: number): void {
  const counted = added.filter(({ kv }) => Number(kv.mod_revision) <= last);
  if (counted.length === 0) return;
  events.set(id, [...(events.get(id) ?? []), ...counted.map((event) => comparableLine(JSON.stringify(event)))]);
}
