import { isConditional } from '../../v2/requests.ts';
import type { KeysRequest } from '../../v2/wire.ts';

const OPERATIONS = ['gets', 'sets', 'delete', 'update', 'create', 'compareAndSwap', 'compareAndDelete'] as const;

type Operation = (typeof OPERATIONS)[number];

/** What was asked and how it went, under the names etcd counts it by. */
export class Tally {
  readonly #counts = new Map<string, number>(
    OPERATIONS.flatMap((operation) => [`${operation}Success`, `${operation}Fail`]).map((name) => [name, 0]),
  );
  #watchers = 0;

  /** What expires is not seen from here. */
  get counts(): object {
    return { ...Object.fromEntries(this.#counts), expireCount: 0, watchers: this.#watchers };
  }

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
