/** Times and names, as the page shows them. */
import { printable } from '../src/base/printable.ts';
import { durationText, timeOfDay } from '../src/cli/queues/durations.ts';
import type { ShownClient, ShownTtl } from '../src/cli/ui/shapes.ts';

const since = (from: number, now: number): string => durationText(Math.max(0, now - from) / 1000);

export const timeText = (at: number): string => timeOfDay(new Date(at));

/** Returns the local day as MM-DD, with the time as HH:MM if wanted. */
export function dayText(at: number, withTime: boolean): string {
  const time = new Date(at);
  const day = [time.getMonth() + 1, time.getDate()].map((part) => String(part).padStart(2, '0')).join('-');
  return withTime ? `${day} ${timeText(at).slice(0, 5)}` : day;
}

/** Returns for how long an entry holds its lock. "At least": it held before the server of the page started. */
export function heldFor({ heldAt, queuedAt, seenAt }: ShownClient, now: number): string {
  if (heldAt !== null) return since(heldAt, now);
  return queuedAt === null ? `at least ${since(seenAt, now)}` : `at most ${since(queuedAt, now)}`;
}

export const waitedFor = (from: number, isKnown: boolean, now: number): string =>
  `${isKnown ? '' : 'at least '}${since(from, now)}`;

type Names = Pick<ShownClient, 'identity' | 'label' | 'uuid' | 'key'>;

/** Returns the name of a client as it is in etcd: its label, else its identity, else its uuid, else the last part of its key. */
export const rawNameOf = ({ label, identity, uuid, key }: Names): string =>
  (label ?? identity ?? uuid) || key.slice(key.lastIndexOf('/') + 1);

export const nameOf = (names: Names): string => printable(rawNameOf(names));

/** Returns the other names of a client. */
export function otherNamesOf(client: Names): string[] {
  const { identity, uuid, key } = client;
  const first = nameOf(client);
  return [identity ?? '', uuid, key]
    .filter((name) => name !== '')
    .map(printable)
    .filter((name) => name !== first);
}

/** Returns the seconds left, by the clock of the server; undefined if no read has shown them since they ran out. */
export function secondsLeft({ left, at }: ShownTtl, now: number): number | undefined {
  const seconds = left === null ? 0 : Math.ceil(left - (now - at) / 1000);
  return seconds > 0 ? seconds : undefined;
}
