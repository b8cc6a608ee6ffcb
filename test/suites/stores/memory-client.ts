import { randomUUID } from 'node:crypto';
import { pause, Scope } from '../../../src/base/cancellation.ts';
import { PendingWork } from '../../../src/base/pending-work.ts';
import { Deadline } from '../../../src/base/time.ts';
import { EtcdClientClosed, EtcdKeysLeft } from '../../../src/errors.ts';
import type { LockClient } from '../../../src/recipe/client.ts';
import type { AdvanceOptions, Entry, LockStore, Marker, StoreCall } from '../../../src/recipe/store.ts';
import { MemoryLockStore } from './memory-lock-store.ts';

type Ttl = number | null;

/** What ends a request. */
interface Ending extends StoreCall {
  /** Default: the start of `close()`. */
  readonly ending?: Scope;
}

interface MemoryEntry extends Entry {
  /** The directory of its queue. */
  readonly path: string;
  readonly expiry: Deadline;
}

/** The state that all clients of one store share. Takes the role of a server. */
export class SharedMemory {
  readonly clusterId = randomUUID();
  /** By key, in the order of their ranks. */
  readonly #entries = new Map<string, MemoryEntry>();
  /** Aborts at the next change. */
  #change = new Scope();
  #lastRank = 0n;
  /** Number of changes so far. Expiries do not count. */
  #version = 0;

  /** Returns the entries that have not expired. */
  entries(): MemoryEntry[] {
    const present = [...this.#entries.values()].filter(({ expiry }) => !expiry.passed);
    return present.map((entry) => ({ ...entry, ttl: secondsUntil(entry.expiry) }));
  }

  append(path: string, value: string, ttl: Ttl, name?: string): Entry {
    this.#lastRank += 1n;
    return this.write({ path, key: name ?? `${path}/${this.#lastRank}`, value, rank: this.#lastRank }, ttl);
  }

  /** Adds an entry, or replaces the one with the same key. */
  write(fields: Omit<MemoryEntry, 'ttl' | 'expiry'>, ttl: Ttl): Entry {
    const expiry = ttl === null ? Deadline.never : Deadline.after(ttl);
    const entry = { ...fields, expiry, ttl: ttl ?? undefined };
    this.#entries.set(entry.key, entry);
    this.#changed();
    return entry;
  }

  remove(key: string): void {
    if (this.#entries.delete(key)) this.#changed();
  }

  /** Waits until the entry with this key and value is written again, renewed or gone, or until `ending` aborts. */
  async untilChanged(key: string, value: string, ending: Scope): Promise<void> {
    const entry = this.#entries.get(key);
    if (entry?.value !== value) return;
    while (this.#entries.get(key) === entry && !entry.expiry.passed && !ending.aborted)
      await pause(entry.expiry.remaining, this.#change, ending);
  }

  get version(): number {
    return this.#version;
  }

  /** Waits until a change after this version, the next expiry, or until `ending` aborts. */
  async untilAfter(version: number, ending: Scope): Promise<void> {
    const left = Math.min(...this.entries().map(({ expiry }) => expiry.remaining));
    if (this.#version === version) await pause(left, this.#change, ending);
  }

  #changed(): void {
    this.#version += 1;
    const change = this.#change;
    this.#change = new Scope();
    change.abort('changed');
  }
}

const secondsUntil = (expiry: Deadline): number | undefined =>
  expiry === Deadline.never ? undefined : Math.ceil(expiry.remaining / 1000);

/** One client of the memory, like the client of one process. Its requests are answered at once. */
export class MemoryClient implements LockClient {
  readonly clusterId: string;
  readonly pending = new PendingWork(() => new EtcdClientClosed('the client was closed'));
  readonly closed = new Scope();
  readonly store: LockStore = new MemoryLockStore(this);
  readonly #memory: SharedMemory;

  constructor(memory: SharedMemory) {
    this.#memory = memory;
    this.clusterId = memory.clusterId;
  }

  /** Reads the entries of a queue, or all entries. */
  read(path: string | undefined, call: StoreCall): Promise<MemoryEntry[]> {
    return this.#request(call, () => this.#entries(path));
  }

  /** Appends an entry and returns its queue. May be repeated: if the value has an entry already, renews that. */
  append(path: string, value: string, ttl: Ttl, call: StoreCall): Promise<Entry[]> {
    return this.#request(call, () => {
      const present = this.#entries(path).find((entry) => entry.value === value);
      if (present) this.#memory.write(present, ttl);
      else this.#memory.append(path, value, ttl);
      return this.#entries(path);
    });
  }

  /** Renews an entry, until `ending`. Resolves to false if it is gone or has another value. */
  renew(key: string, value: string, ttl: Ttl, call: Ending): Promise<boolean> {
    return this.#request(call, () => {
      const present = this.#entries().find((entry) => entry.key === key && entry.value === value);
      if (present) this.#memory.write(present, ttl);
      return present !== undefined;
    });
  }

  /** Removes entries of a queue by value, or by value and key. Still possible while the client is being closed. */
  remove(path: string, { value, key }: { value: string; key?: string }, { signal }: StoreCall): Promise<void> {
    return this.#request({ signal, ending: this.closed }, () => {
      for (const entry of this.#entries(path))
        if (entry.value === value && entry.key === (key ?? entry.key)) this.#memory.remove(entry.key);
    });
  }

  /** Writes a marker unless it has changed. Resolves to the marker that there is then. */
  advance(key: string, { from, to, ttl }: AdvanceOptions, call: StoreCall): Promise<Marker | undefined> {
    return this.#request(call, () => {
      const [present] = this.#entries(key);
      if (present?.rank !== from?.rank) return present;
      return this.#memory.append(key, to, ttl, key);
    });
  }

  /** Waits until an entry may have another value, or be gone. A renewal ends the wait, too. */
  changed(key: string, value: string, call: StoreCall): Promise<void> {
    return this.#request(call, (ending) => this.#memory.untilChanged(key, value, ending));
  }

  /** Number of changes of the store so far. */
  get version(): number {
    return this.#memory.version;
  }

  /** Waits until the store may have changed after this version. */
  untilAfter(version: number, call: StoreCall): Promise<void> {
    return this.#request(call, (ending) => this.#memory.untilAfter(version, ending));
  }

  /** Closes the client as `EtcdClient.close` does. */
  async close({ timeout = 5 } = {}): Promise<void> {
    const left = await this.pending.settle(timeout);
    this.closed.abort(new EtcdClientClosed('the client was closed'));
    if (left.length > 0) throw new EtcdKeysLeft(`closed after ${timeout} s, but left ${left.join(', ')}`, left);
  }

  #entries(path?: string): MemoryEntry[] {
    return this.#memory.entries().filter((entry) => path === undefined || entry.path === path);
  }

  async #request<T>(
    { signal, ending: closed = this.pending.closing }: Ending,
    answer: (ending: Scope) => T | Promise<T>,
  ): Promise<T> {
    const ending = new Scope(closed, signal);
    try {
      ending.throwIfAborted();
      const answered = await answer(ending);
      ending.throwIfAborted();
      return answered;
    } finally {
      ending.dispose();
    }
  }
}
