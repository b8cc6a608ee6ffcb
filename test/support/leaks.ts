import { getEventListeners } from 'node:events';
import { Scope, type Source } from '../../src/cancellation.ts';

/** Timers that this package's timing module has started and neither fired nor cleared, also those that keep nothing alive. */
export function trackTimers(): { readonly live: number; stop(): void } {
  const { setTimeout: realSet, clearTimeout: realClear } = globalThis;
  const live = new Set<unknown>();
  globalThis.setTimeout = ((fn: (...args: unknown[]) => void, ms?: number, ...args: unknown[]) => {
    const own = new Error().stack?.includes('/src/timing') ?? false;
    const timer = realSet(() => {
      live.delete(timer);
      fn(...args);
    }, ms);
    if (own) live.add(timer);
    return timer;
  }) as typeof setTimeout;
  globalThis.clearTimeout = ((timer: NodeJS.Timeout) => {
    live.delete(timer);
    realClear(timer);
  }) as typeof clearTimeout;
  return {
    get live() {
      return live.size;
    },
    stop() {
      globalThis.setTimeout = realSet;
      globalThis.clearTimeout = realClear;
    },
  };
}

export const listenersOf = (source: Source): number =>
  source instanceof Scope ? source.listenerCount : getEventListeners(source, 'abort').length;
