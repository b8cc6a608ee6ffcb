import type { Clock } from './facts.ts';
import type { TimedAnswer } from './member.ts';

/** Milliseconds since 1970 at a moment of the monotonic clock: unlike `Date.now()` the same scale for every member. */
const wall = (moment: number): number => performance.timeOrigin + moment;

/** By the time of a response, which etcd cuts off to whole seconds. */
export function byDateHeader(answer: TimedAnswer): Clock | undefined {
  const { date } = answer.headers;
  const told = typeof date === 'string' ? Date.parse(date) : Number.NaN;
  return clock('Date header', answer, told, told + 1000);
}

/** A member counts the expiration by its own clock, from the moment it takes the request. */
export function byExpiration(answer: TimedAnswer, expiration: string | undefined, ttl: number): Clock | undefined {
  const told = expiration === undefined ? Number.NaN : Date.parse(expiration) - ttl * 1000;
  return clock('test key', answer, told, told);
}

/** It was asked at some moment between the sending and the answer. */
function clock(by: Clock['by'], { sentAt, answeredAt }: TimedAnswer, from: number, to: number): Clock | undefined {
  if (Number.isNaN(from)) return undefined;
  return { by, earliest: (from - wall(answeredAt)) / 1000, latest: (to - wall(sentAt)) / 1000 };
}

/** Seconds by which clocks differ. */
export interface ClockDifference {
  /** At the least. */
  readonly proven: number;
  readonly likely: number;
}

/** undefined for fewer than two. */
export function differenceOf(clocks: readonly Clock[]): ClockDifference | undefined {
  if (clocks.length < 2) return undefined;
  const middles = clocks.map(({ earliest, latest }) => (earliest + latest) / 2);
  const proven = Math.max(...clocks.map(({ earliest }) => earliest)) - Math.min(...clocks.map(({ latest }) => latest));
  return { proven: Math.max(0, proven), likely: Math.max(...middles) - Math.min(...middles) };
}
