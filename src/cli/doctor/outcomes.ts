import { errorText } from '../../base/error-text.ts';
import { EtcdInsufficientPermissions, EtcdKeyNotFound, failuresOf } from '../../errors.ts';
import type { Outcome } from './facts.ts';

/** Returns the outcome of a request. "Key not found" counts as done: the request was permitted. */
export async function outcomeOf(request: Promise<unknown>): Promise<Outcome> {
  try {
    await request;
    return { is: 'done' };
  } catch (error) {
    if (error instanceof EtcdKeyNotFound) return { is: 'done' };
    const is = error instanceof EtcdInsufficientPermissions ? 'refused' : 'failed';
    return { is, message: textOf(error) };
  }
}

/** Returns the text of an error, without the URL of the member: the report already shows that URL. */
function textOf(error: unknown): string {
  const [failure] = failuresOf(error);
  return errorText(failure?.error ?? error);
}

/** Turns whatever was thrown into an error. */
export const asError = (error: unknown): Error => (error instanceof Error ? error : new Error(String(error)));
