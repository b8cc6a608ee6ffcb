import type { ClockOffset } from '../facts.ts';
import type { TimedAnswer } from '../member.ts';

/** Returns a monotonic time as milliseconds since 1970. Unlike `Date.now()`, it does not jump between two measurements. */
const wall = (moment: number): number => performance.timeOrigin + moment;

/** Reads a member's clock from the Date header, which has a resolution of one second. */
export function byDateHeader(answer: TimedAnswer): ClockOffset | undefined {
  const { date } = answer.headers;
  const time = typeof date === 'string' ? Date.parse(date) : Number.NaN;
  return clock('Date header', answer, time, time + 1000);
}

/** Reads a member's clock from the expiration of a new key: the member adds the TTL to its own time. */
export function byExpiration(
  answer: TimedAnswer,
  expiration: string | undefined,
  ttl: number,
): ClockOffset | undefined {
  const time = expiration === undefined ? Number.NaN : Date.parse(expiration) - ttl * 1000;
  return clock('test key', answer, time, time);
}

/** Returns bounds for the offset of a member's clock. It showed a time from `from` to `to` between the request and its answer. */
function clock(
  by: ClockOffset['by'],
  { sentAt, answeredAt }: TimedAnswer,
  from: number,
  to: number,
): ClockOffset | undefined {
  if (Number.isNaN(from)) return undefined;
  return { by, earliest: (from - wall(answeredAt)) / 1000, latest: (to - wall(sentAt)) / 1000 };
}

/** The largest difference between two clocks, in seconds. */
export interface ClockDifference {
  /** Lower bound of the difference. */
  readonly proven: number;
  /** Estimate: difference between the middles of the bounds. */
  readonly likely: number;
}

/** Returns the largest difference; undefined for fewer than two clocks. */
export function differenceOf(clocks: readonly ClockOffset[]): ClockDifference | undefined {
  if (clocks.length < 2) return undefined;
  const middles = clocks.map(({ earliest, latest }) => (earliest + latest) / 2);
  const proven = Math.max(...clocks.map(({ earliest }) => earliest)) - Math.min(...clocks.map(({ latest }) => latest));
  return { proven: Math.max(0, proven), likely: Math.max(...middles) - Math.min(...middles) };
}
