import { subscribe, unsubscribe } from 'node:diagnostics_channel';
import { pause } from '../../cancellation.ts';
import type { LockManager } from '../../manager/manager.ts';
import type { RequestTrace } from '../../manager/trace.ts';
import { ownerOf } from '../queues/show.ts';
import { clearStatus, remark, showStatus } from '../streams.ts';

/** Milliseconds before the first status line. A shorter wait shows no status line. */
const SHOW_AFTER = 1000;
/** Milliseconds between two updates of the status line. */
const UPDATE_EVERY = 2000;

const WAITS = 'tracing:etcd-v2-lock:request:wait';
const REQUEUED = 'tracing:etcd-v2-lock:request:requeued';

/**
 * Shows one status line on stderr during a wait, with the holder and the position in the queue, if stderr is a terminal. Also
 * prints a line each time the entry was lost and the wait continues with another one.
 */
export async function withProgress<T>(locks: LockManager, name: string, wait: () => Promise<T>): Promise<T> {
  if (!process.stderr.isTTY) return wait();
  let trace: RequestTrace | undefined;
  const onWait = (message: unknown): void => {
    trace = message as RequestTrace;
  };
  const onRequeued = (message: unknown): void => {
    clearStatus();
    remark(`${((message as RequestTrace).requeueCause as Error).message}; queueing up again`);
  };
  const over = new AbortController();
  subscribe(WAITS, onWait);
  subscribe(REQUEUED, onRequeued);
  void showProgress(locks, name, () => trace?.uuid, over.signal);
  try {
    return await wait();
  } finally {
    unsubscribe(WAITS, onWait);
    unsubscribe(REQUEUED, onRequeued);
    over.abort();
    clearStatus();
  }
}

async function showProgress(locks: LockManager, name: string, uuid: () => string | undefined, over: AbortSignal) {
  await pause(SHOW_AFTER, over);
  while (!over.aborted) {
    const line = await lineOf(locks, name, uuid());
    if (over.aborted) break;
    showStatus(line);
    await pause(UPDATE_EVERY, over);
  }
}

async function lineOf(locks: LockManager, name: string, uuid: string | undefined): Promise<string> {
  const waiting = `waiting for ${name}`;
  try {
    const { held, pending } = await locks.query(name);
    const queue = [...held, ...pending];
    const holders = held.filter((entry) => entry.uuid !== uuid).map(ownerOf);
    const position = queue.findIndex((entry) => entry.uuid === uuid) + 1;
    const by = holders.length > 0 ? `, held by ${holders.join(', ')}` : '';
    return position > 0 ? `${waiting}${by}, position ${position} of ${queue.length}` : `${waiting}${by}`;
  } catch (error) {
    return `${waiting}: ${error instanceof Error ? error.message : String(error)}`;
  }
}
