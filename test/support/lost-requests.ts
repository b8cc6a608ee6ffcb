import type { Action, ProxiedRequest, Rule } from './proxy.ts';

/** Requests to lose for one failure: the client repeats a request lost on a reused connection at once, so lose that one too. */
export const LOST = 2;

/** Returns a rule that applies the action to the first `count` matching requests and forwards all others. */
export function first(count: number, match: (request: ProxiedRequest) => boolean, action: Action): Rule {
  let left = count;
  return (request) => {
    if (left === 0 || !match(request)) return undefined;
    left -= 1;
    return action;
  };
}
