import { AsyncLocalStorage } from 'node:async_hooks';
import type { Claim } from '../recipe/entries/entry-value.ts';
import type { LockStore } from '../recipe/store.ts';
import type { Held } from './held.ts';

/** A hold whose callback contains the running code. */
export interface Enclosing {
  readonly store: LockStore;
  readonly name: string;
  join<T>(claim: Claim, work: (held: Held) => T | PromiseLike<T>): Promise<T>;
}

/**
 * Refers to a hold until the hold ends. In Node 22 and earlier, every promise keeps alive the frames in which it was
 * created. If the frames were the holds themselves, a callback that starts the next request would keep all earlier holds in
 * memory.
 */
export interface Frame {
  hold: Enclosing | undefined;
}

/** The frames of the holds whose callbacks contain the running code, innermost first. */
const frames = new AsyncLocalStorage<readonly Frame[]>();

const lasting = (): Frame[] => (frames.getStore() ?? []).filter(({ hold }) => hold);

/** Runs the work. In the work, and in all that it calls or starts, {@link enclosingFrame} finds `frame`. */
export const runInside = <T>({ frame }: { readonly frame: Frame }, work: () => T): T =>
  frames.run([frame, ...lasting().filter((other) => other !== frame)], work);

/** Returns the frame of the innermost hold of this lock that has not ended and whose callback contains the caller, if any. */
export const enclosingFrame = (store: LockStore, name: string): Frame | undefined =>
  lasting().find(({ hold }) => hold?.store === store && hold.name === name);
