import { getEventListeners } from 'node:events';
import { Scope, type Source } from '../../src/base/cancellation.ts';

/** A frame of this package's source in a stack trace. */
const OWN = /[/\\]src[/\\][^:]*\.ts:/;

/** Counts the timers of this package that have neither fired nor been cleared, including unref'd ones. */
export function trackTimers(): { readonly live: number; stop(): void } {
  const { setTimeout: realSet, clearTimeout: realClear } = globalThis;
  const live = new Set<unknown>();
  globalThis.setTimeout = ((fn: (...args: unknown[]) => void, ms?: number, ...args: unknown[]) => {
    // The first line is the message, the second this function: the third is the caller.
    const caller = new Error().stack?.split('\n')[2] ?? '';
    const timer = realSet(() => {
      live.delete(timer);
      fn(...args);
    }, ms);
    if (OWN.test(caller)) live.add(timer);
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
