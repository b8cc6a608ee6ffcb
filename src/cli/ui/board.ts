import type { LiveLock } from '../live/model.ts';
import { type LiveStore, lockOf, storeOf, ttlOf } from './encode.ts';
import { frame } from './frame.ts';
import type { LockWithTtl, ShownLock, ShownTtl } from './shapes.ts';
import { byTrouble } from './trouble.ts';

/** A lock as it was last sent. */
interface Sent {
  readonly id: number;
  readonly live: LiveLock;
  readonly lock: ShownLock;
  readonly ttl: ShownTtl | null;
  /** Both as JSON: the lock without its last brace. */
  readonly lockText: string;
  readonly ttlText: string;
}

const textOf = ({ lockText, ttlText }: Sent): string => `${lockText},"ttl":${ttlText}}`;

/** All locks as JSON, encoded once for all viewers. */
export class Board {
  readonly #stores: readonly LiveStore[];
  /** For each store, by the path of the queue. */
  readonly #sent: readonly Map<string, Sent>[];
  #lastId = 0;
  #outages: string;
  #snapshot: Buffer | undefined;

  constructor(stores: readonly LiveStore[]) {
    this.#stores = stores;
    this.#sent = stores.map(() => new Map());
    this.#outages = this.#outagesText();
  }

  /** The locks of a store, as of the last {@link change}, the most urgent first. */
  inTrouble(api: 'v2' | 'v3'): LockWithTtl[] {
    const sent = this.#sent[this.#stores.findIndex((store) => store.api === api)] ?? [];
    return [...sent.values()].map(({ lock, ttl }) => ({ ...lock, ttl })).sort(byTrouble);
  }

  /** Returns what has changed since the last call, as an event with a `SnapshotChange`; undefined if nothing has. */
  change(): Buffer | undefined {
    const locks: string[] = [];
    const gone: number[] = [];
    const ttls: string[] = [];
    for (const [at, { api, model }] of this.#stores.entries()) {
      const sent = this.#sent[at] ?? new Map<string, Sent>();
      const left = new Set(sent.keys());
      for (const live of model.locks) {
        left.delete(live.path);
        const before = sent.get(live.path);
        if (before?.live === live) continue;
        const after = this.#encode(live, api, before?.id);
        if (!after) continue;
        sent.set(live.path, after);
        if (before?.lockText !== after.lockText) locks.push(textOf(after));
        else if (before.ttlText !== after.ttlText) ttls.push(`"${after.id}":${after.ttlText}`);
      }
      for (const path of left) {
        gone.push(sent.get(path)?.id ?? 0);
        sent.delete(path);
      }
    }
    const outages = this.#outagesText();
    if (locks.length + gone.length + ttls.length === 0 && outages === this.#outages) return undefined;
    this.#outages = outages;
    this.#snapshot = undefined;
    return frame('change', `{${this.#head()},"locks":[${locks}],"gone":[${gone}],"ttls":{${ttls}}}`);
  }

  /** Returns all locks as of the last {@link change}, as an event with a `Snapshot`. */
  snapshot(): Buffer {
    const all = (): string[] => this.#sent.flatMap((sent) => [...sent.values()].map(textOf));
    this.#snapshot ??= frame('snapshot', `{${this.#head()},"locks":[${all()}]}`);
    return this.#snapshot;
  }

  #encode(live: LiveLock, api: 'v2' | 'v3', id: number | undefined): Sent | undefined {
    const [holder] = live.holders;
    if (!holder) return undefined;
    if (id === undefined) this.#lastId += 1;
    const lock = lockOf(live, holder, api, id ?? this.#lastId);
    const ttl = ttlOf(holder);
    return { id: lock.id, live, lock, ttl, lockText: JSON.stringify(lock).slice(0, -1), ttlText: JSON.stringify(ttl) };
  }

  #head(): string {
    return `"now":${Date.now()},"stores":${JSON.stringify(this.#stores.map(storeOf))}`;
  }

  #outagesText(): string {
    return JSON.stringify(this.#stores.map(storeOf).map(({ outage, omitted }) => ({ outage, omitted })));
  }
}
