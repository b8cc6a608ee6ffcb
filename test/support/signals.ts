import { type MockInstance, vi } from 'vitest';

export interface WatchedSignal {
  readonly controller: AbortController;
  readonly signal: AbortSignal;
  /** How many listeners are on the signal right now. */
  readonly listeners: number;
  /** How many were ever added. */
  readonly added: number;
}

/** A signal that tells whether somebody left a listener behind. One that has fired `once` counts as removed. */
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
