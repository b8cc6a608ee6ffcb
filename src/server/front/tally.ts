import { isConditional } from '../../v2/requests.ts';
import type { KeysRequest } from '../../v2/wire.ts';

const OPERATIONS = ['gets', 'sets', 'delete', 'update', 'create', 'compareAndSwap', 'compareAndDelete'] as const;

type Operation = (typeof OPERATIONS)[number];

/** Counts operations and their outcomes, under etcd's names for them. */
export class Tally {
  readonly #counts = new Map<string, number>(
    OPERATIONS.flatMap((operation) => [`${operation}Success`, `${operation}Fail`]).map((name) => [name, 0]),
  );
  #watchers = 0;

  /** `expireCount` is always 0: the store does not report expiries here. */
  get counts(): object {
    return { ...Object.fromEntries(this.#counts), expireCount: 0, watchers: this.#watchers };
  }

  /** Runs `work`, and counts whether it succeeds or fails. */
  async call<T>(request: KeysRequest, work: () => Promise<T>): Promise<T> {
    const operation = operationOf(request);
    try {
      const result = await work();
      this.#add(`${operation}Success`);
      return result;
    } catch (error) {
      this.#add(`${operation}Fail`);
      throw error;
    }
  }

  /** Runs `work`, and counts it as a watcher until it ends. */
  async wait(work: () => Promise<void>): Promise<void> {
    this.#watchers += 1;
    try {
      await work();
    } finally {
      this.#watchers -= 1;
    }
  }

  #add(name: string): void {
    this.#counts.set(name, (this.#counts.get(name) ?? 0) + 1);
  }
}

function operationOf(request: KeysRequest): Operation {
  if (request.call === 'get' || request.call === 'watch') return 'gets';
  if (request.call === 'createInOrder') return 'create';
  const conditional = isConditional(request.options);
  if (request.call === 'delete') return conditional ? 'compareAndDelete' : 'delete';
  if (conditional) return 'compareAndSwap';
  if (request.options.prevExist === undefined) return 'sets';
  return request.options.prevExist ? 'update' : 'create';
}
