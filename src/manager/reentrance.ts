import { AsyncLocalStorage } from 'node:async_hooks';
import type { LockMode } from '../recipe/entry-value.ts';
import type { LockStore } from '../recipe/store.ts';
import type { Held } from './held.ts';

/** A hold around running code. */
export interface Enclosing {
  readonly store: LockStore;
  readonly name: string;
  join<T>(mode: LockMode, work: (held: Held) => T | PromiseLike<T>): Promise<T>;
}

/**
 * Refers to a hold while it lasts. Up to Node 22 every promise created inside keeps its frames alive, so work that starts its
 * own successor would keep all the holds before it.
 */
export interface Frame {
  hold: Enclosing | undefined;
}

/** Around the running code, innermost first. */
const frames = new AsyncLocalStorage<readonly Frame[]>();

const lasting = (): Frame[] => (frames.getStore() ?? []).filter(({ hold }) => hold);

/** Runs the work so that {@link enclosingHold} finds the frame's hold in it, and in all it calls and starts. */
export const runInside = <T>({ frame }: { readonly frame: Frame }, work: () => T): T =>
  frames.run([frame, ...lasting().filter((other) => other !== frame)], work);

/** Returns the innermost hold of this lock around the caller that still lasts. */
export const enclosingHold = (store: LockStore, name: string): Enclosing | undefined =>
  lasting().find(({ hold }) => hold?.store === store && hold.name === name)?.hold;
