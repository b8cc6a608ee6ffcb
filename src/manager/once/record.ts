import { show } from '../../base/checks.ts';
import { EtcdValueError } from '../../errors.ts';
import { formatValue, parseValue } from '../../recipe/entries/entry-value.ts';
import type { Marker } from '../../recipe/store.ts';
import type { RecordedTick } from './tick.ts';

/** A record, as the parts of its marker's value: `<time of the tick> <state> <uuid>[@<label>]`. */
export interface TickRecord {
  /** When the tick was due: milliseconds since the epoch. */
  readonly at: number;
  readonly state: RecordedTick['state'];
  /** Identifies the attempt that has begun the tick. */
  readonly uuid: string;
  readonly label: string | undefined;
}

const VALUE = /^(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z) (begun|ran|failed) ([0-9a-f]{32}(?:@.+)?)$/;

export const formatRecord = ({ at, state, uuid, label }: TickRecord): string =>
  `${new Date(at).toISOString()} ${state} ${formatValue({ mode: 'exclusive', limit: undefined, identity: undefined, label }, uuid)}`;

/** @throws {EtcdValueError} for a value that this package has not written: then it is not known which ticks have run */
export function parseRecord(key: string, { value }: Pick<Marker, 'value'>): TickRecord {
  const [, at = '', state, who = ''] = VALUE.exec(value) ?? [];
  if (state === undefined || Number.isNaN(Date.parse(at)))
    throw new EtcdValueError(
      `${key} must have a value such as "2026-01-01T00:00:00.000Z ran <uuid>", got ${show(value)}. ` +
        'Delete this key: then the next tick runs',
    );
  const { uuid, label } = parseValue(who);
  return { at: Date.parse(at), state: state as TickRecord['state'], uuid, label };
}

export const recordedTick = ({ at, state, label }: TickRecord): RecordedTick => ({
  at: new Date(at),
  state,
  by: label,
});
