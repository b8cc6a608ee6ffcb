import { type MockInstance, vi } from 'vitest';

export interface WatchedSignal {
  readonly controller: AbortController;
  readonly signal: AbortSignal;
  /** How many listeners the signal has now. */
  readonly listeners: number;
  /** How many were ever added. */
  readonly added: number;
}

/** Returns a signal that counts its listeners, to detect leftover ones. After the abort none counts. */
export function watchedSignal(): WatchedSignal {
  const controller = new AbortController();
  const { signal } = controller;
  const add = vi.spyOn(signal, 'addEventListener');
  const remove = vi.spyOn(signal, 'removeEventListener');
  return {
    controller,
    signal,
    get listeners() {
      if (signal.aborted) return 0;
      const removed = new Set(listenersOf(remove));
      return new Set(listenersOf(add).filter((listener) => !removed.has(listener))).size;
    },
    get added() {
      return add.mock.calls.length;
    },
  };
}

function listenersOf({ mock }: MockInstance<AbortSignal['addEventListener' | 'removeEventListener']>): unknown[] {
  return mock.calls.map(([, listener]) => listener);
}
