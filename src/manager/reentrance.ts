import { AsyncLocalStorage } from 'node:async_hooks';
import type { KeysApi } from '../v2/keys-api.ts';
import type { Hold } from './hold.ts';

/**
 * A hold for as long as it lasts. Whatever is made inside keeps its frames, up to Node 22 every promise does: work that
 * starts its own successor would keep all the holds before it.
 */
export interface Frame {
  hold: Hold | undefined;
}

/** Around the running code, innermost first. */
const frames = new AsyncLocalStorage<readonly Frame[]>();

const lasting = (): Frame[] => (frames.getStore() ?? []).filter(({ hold }) => hold);

/** Runs the work so that it, and all it calls and starts, finds the hold. */
export const runInside = <T>({ frame }: Hold, work: () => T): T =>
  frames.run([frame, ...lasting().filter((other) => other !== frame)], work);

/** The innermost hold of this lock around the caller that still lasts. */
export const enclosingHold = (keys: KeysApi, name: string): Hold | undefined =>
  lasting().find(({ hold }) => hold?.keys === keys && hold.held.name === name)?.hold;
