import { AsyncLocalStorage } from 'node:async_hooks';
import { channel } from 'node:diagnostics_channel';
import type { TestContext } from 'vitest';
import { channelOf, type RequestTrace } from '../../src/manager/trace.ts';

/** The name of the flow that the running code belongs to, as an application's own `AsyncLocalStorage` has it. */
export const flow = new AsyncLocalStorage<string>();

const EVENTS = [
  ...['start', 'end', 'asyncStart', 'asyncEnd', 'error'],
  ...['wait', 'queued', 'requeued', 'renewed', 'renewal-failed', 'held', 'lost', 'released', 'outcome'],
] as const;

/** A call of user code: what was called for which lock, and in which flow it ran. */
export interface UserCall {
  readonly what: string;
  readonly lock: string;
  readonly flow: string | undefined;
}

/** Records every event of requests for locks whose names begin with `start`, from now on until the test ends. */
export function followEvents(start: string, onTestFinished: TestContext['onTestFinished']): UserCall[] {
  const calls: UserCall[] = [];
  for (const what of EVENTS) {
    const at = channel(channelOf(what));
    const record = (message: unknown): void => {
      const { name: lock } = message as RequestTrace;
      if (lock.startsWith(start)) calls.push({ what, lock, flow: flow.getStore() });
    };
    at.subscribe(record);
    onTestFinished(() => void at.unsubscribe(record));
  }
  return calls;
}
