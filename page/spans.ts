/** When each client has waited and held, out of the queue of a lock and its history. */
import type { ShownEntry, ShownEvent, ShownQueue } from '../src/cli/ui/shapes.ts';
import { rawNameOf } from './words.ts';

type Kind = ShownEvent['kind'];

/** A time in which an entry has waited or held. */
export interface Span {
  readonly state: ShownEntry['state'];
  readonly from: number;
  /** undefined: it still does. */
  readonly to: number | undefined;
}

export interface Mark {
  readonly at: number;
  readonly kind: Kind;
}

/** One entry, from its begin to its end. */
interface Stay {
  readonly name: string;
  readonly api: string;
  spans: readonly Span[];
  readonly marks: Mark[];
}

/** What a client has done: its entries one after the other. A client with several entries at a time has several lanes. */
export interface Lane {
  /** As it is in etcd: most lanes are not drawn. */
  readonly name: string;
  readonly api: string;
  readonly spans: readonly Span[];
  readonly marks: readonly Mark[];
  readonly from: number;
  /** undefined: its last entry is still there. */
  readonly to: number | undefined;
}

/** Events at which an entry ends. */
const ENDS: ReadonlySet<Kind> = new Set(['released', 'left', 'expired', 'gone']);
/** Events that are the begin or the end of a span, and nothing more. */
const PLAIN: ReadonlySet<Kind> = new Set(['queued', 'acquired']);

/** Returns the lanes of all clients, by their first span. Of what was there before, only the time that is recorded is known. */
export function lanesOf(queue: ShownQueue): readonly Lane[] {
  const before = queue.recordedSince;
  const stays: Stay[] = [];
  const open = new Map<string, Stay>();
  for (const event of queue.history) {
    const id = `${event.api} ${event.client.key}`;
    let stay = open.get(id);
    if (!stay || event.kind === 'queued') {
      // The end of an earlier entry with this key was missed.
      if (stay) stay.spans = ended(stay.spans, event.at);
      stay = { name: rawNameOf(event.client), api: event.api, spans: firstSpans(event, before), marks: [] };
      stays.push(stay);
      open.set(id, stay);
    } else stay.spans = spansAfter(stay.spans, event);
    if (!PLAIN.has(event.kind)) stay.marks.push({ at: event.at, kind: event.kind });
    if (ENDS.has(event.kind)) open.delete(id);
  }
  for (const { api, entries } of queue.queues)
    for (const entry of entries) {
      const known = open.get(`${api} ${entry.key}`);
      const stay = known ?? { name: rawNameOf(entry), api, spans: [], marks: [] };
      stay.spans = presentSpans(entry);
      if (!known) stays.push(stay);
    }
  return inLanes(stays);
}

/** The spans of an entry whose first known event is this one. */
function firstSpans({ kind, at }: ShownEvent, before: number): Span[] {
  switch (kind) {
    case 'acquired':
      return [
        { state: 'waits', from: before, to: at },
        { state: 'holds', from: at, to: undefined },
      ];
    // A removed holder is released, a removed waiter has left.
    case 'released':
      return [{ state: 'holds', from: before, to: at }];
    case 'left':
      return [{ state: 'waits', from: before, to: at }];
    // Nobody has seen whether it waited or held.
    case 'expired':
    case 'gone':
    case 'changed':
    case 'wiped':
      return [];
    case 'queued':
    case 're-created':
      return [{ state: 'waits', from: at, to: undefined }];
  }
}

function spansAfter(spans: readonly Span[], { kind, at }: ShownEvent): readonly Span[] {
  if (kind !== 'acquired' && !ENDS.has(kind)) return spans;
  return kind === 'acquired' ? [...ended(spans, at), { state: 'holds', from: at, to: undefined }] : ended(spans, at);
}

const ended = (spans: readonly Span[], at: number): Span[] =>
  spans.map((span) => (span.to === undefined ? { ...span, to: at } : span));

function presentSpans({ state, seenAt, queuedAt, heldAt }: ShownEntry): Span[] {
  if (state === 'waits') return [{ state, from: queuedAt ?? seenAt, to: undefined }];
  if (heldAt === null) return [{ state, from: seenAt, to: undefined }];
  return [
    { state: 'waits', from: queuedAt ?? seenAt, to: heldAt },
    { state: 'holds', from: heldAt, to: undefined },
  ];
}

const beginOf = ({ spans, marks }: Stay): number => spans[0]?.from ?? marks[0]?.at ?? 0;

function endOf({ spans, marks }: Stay): number | undefined {
  const last = spans.at(-1);
  return last ? last.to : marks.at(-1)?.at;
}

function inLanes(stays: readonly Stay[]): Lane[] {
  const lanes: Lane[] = [];
  const byClient = new Map<string, number[]>();
  for (const stay of stays.toSorted((one, other) => beginOf(one) - beginOf(other))) {
    const { name, api, spans, marks } = stay;
    const client = `${api} ${name}`;
    const own = byClient.get(client) ?? [];
    const from = beginOf(stay);
    const at = own.find((index) => (lanes[index]?.to ?? Number.POSITIVE_INFINITY) <= from);
    const lane = at === undefined ? undefined : lanes[at];
    if (at !== undefined && lane)
      lanes[at] = { ...lane, spans: [...lane.spans, ...spans], marks: [...lane.marks, ...marks], to: endOf(stay) };
    else {
      byClient.set(client, [...own, lanes.length]);
      lanes.push({ name, api, spans, marks, from, to: endOf(stay) });
    }
  }
  return lanes;
}

/**
 * Returns the lanes to draw if there are too many: those that are still there, in the order of their begin, and those that have ended
 * last. Each of the two gets at least half of the room, if it needs it.
 */
export function chosen(lanes: readonly Lane[], most: number): readonly Lane[] {
  if (lanes.length <= most) return lanes;
  const present = lanes.filter(({ to }) => to === undefined);
  const past = lanes.filter(({ to }) => to !== undefined);
  const room = Math.max(Math.ceil(most / 2), most - past.length);
  const shown = new Set(present.slice(0, room));
  const latest = past.toSorted((one, other) => (other.to ?? 0) - (one.to ?? 0));
  for (const lane of latest.slice(0, most - shown.size)) shown.add(lane);
  return lanes.filter((lane) => shown.has(lane));
}

const SECOND = 1000;
const MINUTE = 60 * SECOND;
const HOUR = 60 * MINUTE;
const DAY = 24 * HOUR;
const STEPS = [
  ...[1, 2, 5, 10, 15, 30].map((count) => count * SECOND),
  ...[1, 2, 5, 10, 15, 30].map((count) => count * MINUTE),
  ...[1, 2, 3, 6, 12].map((count) => count * HOUR),
];

/** Returns at most `most` round times within a range, and the step between them. Round is: by the local clock. */
export function ticksIn(from: number, to: number, most: number): { readonly step: number; readonly at: number[] } {
  const least = (to - from) / most;
  const step = STEPS.find((each) => each >= least) ?? Math.ceil(least / DAY) * DAY;
  const offset = new Date(to).getTimezoneOffset() * MINUTE;
  const first = Math.ceil((from - offset) / step) * step + offset;
  const at: number[] = [];
  for (let tick = first; tick <= to && at.length < most; tick += step) at.push(tick);
  return { step, at };
}
