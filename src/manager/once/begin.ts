import { sleep } from '../../base/cancellation.ts';
import { Backoff } from '../../base/time.ts';
import { isTransient } from '../../errors.ts';
import type { Attempt } from '../../recipe/attempt.ts';
import { freshUuid } from '../../recipe/entries/uuid.ts';
import { LONGEST_TTL } from '../../recipe/option-checks.ts';
import type { Marker, MarkerStore, StoreCall } from '../../recipe/store.ts';
import { formatRecord, parseRecord, recordedTick, type TickRecord } from './record.ts';
import type { Schedule } from './schedule.ts';
import type { Tick } from './tick.ts';

/** A record is kept until this many more ticks are due. Fewer missed ticks than this are normally counted. */
const KEPT_TICKS = 10;
/**
 * Seconds that a record is kept in addition. So while the clocks of hosts differ by less than this, the record of a tick exists as
 * long as that tick is the current one on any host.
 */
const KEPT_FOR = 86_400;

/** A tick that this host has begun, and its record in the store. */
export interface Begun {
  readonly tick: Tick;
  readonly record: TickRecord;
  readonly marker: Marker;
}

interface Found {
  readonly record: TickRecord;
  readonly marker: Marker;
}

/** Reads the last tick that a host has begun; undefined if it is not known. */
export async function readRecord(markers: MarkerStore, call: StoreCall): Promise<Found | undefined> {
  const marker = await markers.read(call);
  return marker && { marker, record: parseRecord(markers.key, marker) };
}

interface Beginning {
  readonly markers: MarkerStore;
  readonly schedule: Schedule;
  readonly label: string | undefined;
  /** Throws if the tick must not be begun any more. Called before the record is written. */
  readonly assertWanted: () => void;
  /**
   * Throws if the next tick is due by the clock of this host. Unlike `assertWanted`, ignores that the clock may have been set back
   * to before this tick: once the tick is recorded, no other host begins it.
   */
  readonly assertInTime: () => void;
}

/**
 * Records that this host begins a tick. If a host has begun it or a later one already, resolves to that host's record
 * instead. Call this while the lock is held.
 *
 * The record is replaced only if it is unchanged, and only by a later tick. So no tick is begun twice while a record of
 * it, or of a later tick, exists. {@link ttlFor} says why one exists long enough.
 */
export async function begin(
  { markers, schedule, label, assertWanted, assertInTime }: Beginning,
  at: number,
  { reading, writing }: Readonly<Record<'reading' | 'writing', Attempt>>,
): Promise<Begun | TickRecord> {
  const record: TickRecord = { at, state: 'begun', uuid: freshUuid(), label };
  const to = formatRecord(record);
  const ttl = ttlFor(schedule, at);
  for (;;) {
    const found = await reading.retry(() => readRecord(markers, { signal: reading.signal }));
    if (found && found.record.at >= at) return found.record;
    assertWanted();
    const change = { from: found?.marker, to, ttl };
    const marker = await writing.retry(() => markers.advance(change, { signal: writing.signal }));
    if (marker?.value !== to) continue;
    // The write may have been carried out late, when an earlier record of this tick had expired and could not stop it.
    assertInTime();
    const previous = found && recordedTick(found.record);
    const missed = found && schedule.between(found.record.at, at);
    return { tick: { at: new Date(at), missed, previous }, record, marker };
  }
}

/** Records how the tick has ended, unless a later one has begun. Retries until the signal aborts. */
export async function recordEnd(
  { markers, schedule }: Pick<Beginning, 'markers' | 'schedule'>,
  { record, marker }: Begun,
  state: 'ran' | 'failed',
  { signal }: Required<StoreCall>,
): Promise<void> {
  const options = { from: marker, to: formatRecord({ ...record, state }), ttl: ttlFor(schedule, record.at) };
  for (const backoff = new Backoff(); ; await sleep(backoff.next(), signal)) {
    try {
      await markers.advance(options, { signal });
      return;
    } catch (error) {
      if (!isTransient(error)) throw error;
    }
  }
}

/**
 * Returns the TTL of a tick's record, in seconds: until ten more ticks are due, and a day longer.
 *
 * A host begins a tick only while its own clock is between this tick and the next one. The clock of the host that wrote the record had
 * reached the tick. If the two clocks differ by less than the TTL minus the time between the two ticks, the record has therefore not
 * expired when the last host could begin the tick. That bound is more than a day.
 */
export function ttlFor(schedule: Schedule, at: number): number {
  let end = at;
  for (let tick = 0; tick < KEPT_TICKS; tick += 1) end = schedule.next(end);
  return Math.min(Math.ceil((end - at) / 1000) + KEPT_FOR, LONGEST_TTL);
}
