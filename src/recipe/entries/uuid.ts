import { v4 } from 'uuid';

/** The time in milliseconds, the version 7, and the variant; 74 bits are random. */
const TIMED = /^([0-9a-f]{12})7[0-9a-f]{3}[89ab][0-9a-f]{15}$/;

/** Returns a new random uuid in python-etcd's form: 32 hex digits without dashes. */
export const freshUuid = (): string => v4().replaceAll('-', '');

/**
 * Returns a new uuid that begins with the time (version 7 of RFC 9562), in the form of {@link freshUuid}. For an entry that is added
 * at once: so whoever sees the queue knows since when it is there.
 */
export function timedUuid(): string {
  const time = Date.now().toString(16).padStart(12, '0');
  return `${time}7${freshUuid().slice(time.length + 1)}`;
}

/** Returns when a uuid was made, by the clock of its client. undefined if it does not say, like the random ones of python-etcd. */
export function madeAt(uuid: string): Date | undefined {
  const [, time] = TIMED.exec(uuid) ?? [];
  return time === undefined ? undefined : new Date(Number.parseInt(time, 16));
}
