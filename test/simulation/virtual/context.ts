import { AsyncLocalStorage } from 'node:async_hooks';

const storage = new AsyncLocalStorage<unknown>();

/** One storage for all instances: with each one more, Node needs longer for each promise. Each program has at most one. */
export class SharedStorage {
  constructor() {
    // biome-ignore lint/correctness/noConstructorReturn: whoever makes one gets the one that there is
    return storage;
  }
}

/** Returns a function that runs the step in the async context of this call, as Node runs what a timer calls. */
export function inThisContext(step: () => void): () => void {
  const store = storage.getStore();
  return store === undefined ? step : () => storage.run(store, step);
}
