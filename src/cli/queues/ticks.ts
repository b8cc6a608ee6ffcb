/** The last tick of a job that runs once per tick, as etcd keeps it, and the ticks since then. */
import { EtcdValueError } from '../../errors.ts';
import { parseRecord, type TickRecord } from '../../manager/once/record.ts';
import { type Schedule, scheduleOf } from '../../manager/once/schedule.ts';

/** A job, with the tick that a host has begun last. */
export interface JobTick {
  readonly name: string;
  /** undefined if the value of the record was not written by this package. */
  readonly record: TickRecord | undefined;
  /** Number of ticks since then that no host has begun, the present one included; undefined without a schedule. */
  readonly missed: number | undefined;
}

/** @param value the value of the record */
export function tickOf(name: string, value: string, schedule: Pick<Schedule, 'between'> | undefined): JobTick {
  try {
    const record = parseRecord(name, { value });
    return { name, record, missed: schedule?.between(record.at, Date.now()) };
  } catch (error) {
    if (!(error instanceof EtcdValueError)) throw error;
    return { name, record: undefined, missed: undefined };
  }
}

/** @throws {TypeError | RangeError} for an invalid schedule or time zone; the message names the flags and shows the value */
export const scheduleFor = (once: string, timeZone: string | undefined): Schedule =>
  scheduleOf(once, timeZone, { every: '--once', timeZone: '--time-zone' });
