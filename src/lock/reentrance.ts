import { AsyncLocalStorage } from 'node:async_hooks';
import type { KeysApi } from '../keys/api.ts';
import type { Hold } from './hold.ts';

interface Frame {
  readonly hold: Hold;
  readonly outer: Frame | undefined;
}

const frames = new AsyncLocalStorage<Frame>();

/** Runs the work so that it, and all it calls and starts, finds the hold. */
export const runInside = <T>(hold: Hold, work: () => T): T => frames.run({ hold, outer: frames.getStore() }, work);

/** The innermost hold of this lock around the caller that still lasts. */
export function enclosingHold(keys: KeysApi, name: string): Hold | undefined {
  for (let frame = frames.getStore(); frame; frame = frame.outer) {
    const { hold } = frame;
    if (hold.keys === keys && hold.held.name === name && !hold.isOver) return hold;
  }
  return undefined;
}
