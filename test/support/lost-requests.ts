import type { Action, ProxiedRequest, Rule } from './proxy.ts';

/** A request that is lost on a connection used before is sent again at once: for a failure that one has to be lost, too. */
export const LOST = 2;

/** A rule that gives the action to the first requests that match, and lets all others through. */
export function first(count: number, match: (request: ProxiedRequest) => boolean, action: Action): Rule {
  let left = count;
  return (request) => {
    if (left === 0 || !match(request)) return undefined;
    left -= 1;
    return action;
  };
}
