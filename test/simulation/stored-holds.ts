import { describe } from './claim.ts';
import type { LiveHold } from './excuses.ts';
import { whatIsBefore } from './order.ts';
import { queueOf, type Stored } from './stored.ts';

/** Returns what contradicts a hold: who holds a lock has an entry, and nothing before that entry keeps it from holding. */
export function contradictionsOf(hold: LiveHold, stored: readonly Stored[]): string[] {
  const { process, key } = hold;
  if (key === undefined) return [];
  const what = `${process.name} holds ${describe(hold)}`;
  const own = entriesOf(key, stored);
  if (own.length === 0) return [`${what}, but ${key} is gone`];
  return own.flatMap((entry) => {
    const before = whatIsBefore(entry, queueOf(entry, stored));
    return before ? [`${what}, but ${before.key} is before ${entry.key}`] : [];
  });
}

/** Returns why a holder believes too long in an entry: longer than the store keeps it. */
export function overestimateOf(hold: LiveHold, seconds: number, stored: readonly Stored[]): string | undefined {
  const { process, key } = hold;
  if (key === undefined) return undefined;
  const own = entriesOf(key, stored);
  const left = own.length === 0 ? 0 : Math.min(...own.map((entry) => entry.left));
  if (seconds * 1000 <= left) return undefined;
  const how = own.length === 0 ? 'is gone' : `expires in ${Math.round(left)} ms`;
  return `${process.name} holds ${describe(hold)} for ${Math.round(seconds * 1000)} ms, but ${key} ${how}`;
}

/** Returns the keys that no write of the package leaves: one that was created again. Only its managers label their values. */
export const createdAgain = (stored: readonly Stored[]): string[] =>
  stored.filter(({ rank, created, value }) => created !== rank && value.includes('@')).map(({ key }) => key);

/** Returns the entry with a key. A client of both stores has another one with the same value in the other store. */
function entriesOf(key: string, stored: readonly Stored[]): Stored[] {
  const own = stored.find((entry) => entry.key === key);
  return own ? stored.filter((one) => one === own || (one.store !== own.store && one.value === own.value)) : [];
}
