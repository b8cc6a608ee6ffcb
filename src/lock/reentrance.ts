import { AsyncLocalStorage } from 'node:async_hooks';
import type { KeysApi } from '../keys/api.ts';
import type { Hold } from './hold.ts';

/**
 * A hold for as long as it lasts. All that is started inside a hold keeps this for good, and that may be the next request,
 * and so on for ever: so it must not keep the hold.
 */
export interface Lasting {
  hold: Hold | undefined;
}

/** The innermost first. */
const around = new AsyncLocalStorage<readonly Lasting[]>();

/** Runs the work so that it, and all it calls and starts, finds the hold. */
export const runInside = <T>(lasting: Lasting, work: () => T): T =>
  around.run([lasting, ...(around.getStore() ?? []).filter(({ hold }) => hold)], work);

/** The innermost hold of this lock around the caller that still lasts. */
export const enclosingHold = (keys: KeysApi, name: string): Hold | undefined =>
  around.getStore()?.find(({ hold }) => hold?.keys === keys && hold.held.name === name)?.hold;
