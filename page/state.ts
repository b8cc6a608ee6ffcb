/** What the page knows, as signals. All times are milliseconds by the clock of the server's host. */
import { computed, signal } from '@preact/signals';
import type { LockWithTtl, ShownQueue, ShownStore, Snapshot, SnapshotChange } from '../src/cli/ui/shapes.ts';
import { byTrouble } from '../src/cli/ui/trouble.ts';

export type View = 'locks' | 'elections' | 'jobs' | 'checks' | 'move';

/** Whether the server of the page answers, and since when it does not. */
export const lostSince = signal<number | undefined>(undefined);
/** Whether anything has arrived yet. */
export const isLoaded = signal(false);
export const stores = signal<readonly ShownStore[]>([]);
/** What is shown. */
export const view = signal<View>('locks');
/** The open lock: its name in the address, and its queue. */
export const openName = signal<string | undefined>(undefined);
export const queue = signal<ShownQueue | undefined>(undefined);
/** The time, once per second. */
export const clock = signal(Date.now());

export const search = signal('');
export const order = signal<OrderName>('trouble');
/** Number of rows of the list that are shown. */
export const ROWS = 100;
export const rows = signal(ROWS);

const locks = new Map<number, LockWithTtl>();
/** Changes with `locks`. */
const version = signal(0);
/** By how much the clock of the server is ahead of that of the browser. */
let ahead = 0;

type Order = (one: LockWithTtl, other: LockWithTtl) => number;

const heldSince = ({ holder: { heldAt, queuedAt, seenAt } }: LockWithTtl): number => heldAt ?? queuedAt ?? seenAt;

export const ORDERS = {
  trouble: byTrouble,
  waiters: (one, other) => other.waiters - one.waiters || byTrouble(one, other),
  'longest hold': (one, other) => heldSince(one) - heldSince(other) || byTrouble(one, other),
  name: (one, other) => (one.name < other.name ? -1 : one.name > other.name ? 1 : byTrouble(one, other)),
} satisfies Record<string, Order>;

export type OrderName = keyof typeof ORDERS;

/** The locks that the search finds, in order. */
export const found = computed((): readonly LockWithTtl[] => {
  void version.value;
  const text = search.value.toLowerCase();
  const all = [...locks.values()];
  const matching = text === '' ? all : all.filter(({ name }) => name.toLowerCase().includes(text));
  return matching.sort(ORDERS[order.value]);
});

/** The locks that are elections, by their name. */
export const elections = computed((): readonly LockWithTtl[] => {
  void version.value;
  return [...locks.values()].filter(({ candidates }) => candidates > 0).sort(ORDERS.name);
});

export const count = computed((): number => {
  void version.value;
  return locks.size;
});

export const contended = computed((): number => found.value.filter(({ waiters }) => waiters > 0).length);

export function tick(): void {
  clock.value = Date.now() + ahead;
}

/** Takes over the time of a message, which took almost no time to arrive. */
export function heard(now: number): void {
  ahead = now - Date.now();
  lostSince.value = undefined;
  tick();
}

export function lost(): void {
  lostSince.value ??= Date.now() + ahead;
}

export function showAll(snapshot: Snapshot): void {
  locks.clear();
  for (const lock of snapshot.locks) locks.set(lock.id, lock);
  stores.value = snapshot.stores;
  isLoaded.value = true;
  version.value += 1;
}

export function applyChange({ stores: now, locks: changed, gone, ttls }: SnapshotChange): void {
  for (const id of gone) locks.delete(id);
  for (const lock of changed) locks.set(lock.id, lock);
  for (const [id, ttl] of Object.entries(ttls)) {
    const lock = locks.get(Number(id));
    if (lock) locks.set(lock.id, { ...lock, ttl });
  }
  stores.value = now;
  version.value += 1;
}

export function showQueue(shown: ShownQueue): void {
  queue.value = shown;
  stores.value = shown.stores;
  isLoaded.value = true;
}

/** Opens a lock, or a list. */
export function open(name: string | undefined, list: View): void {
  view.value = list;
  openName.value = name;
  queue.value = undefined;
  isLoaded.value = false;
}
