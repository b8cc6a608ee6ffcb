import { subscribe, unsubscribe } from 'node:diagnostics_channel';
import { pause } from '../../base/cancellation.ts';
import { errorText } from '../../base/error-text.ts';
import { now } from '../../base/time.ts';
import type { LockManager } from '../../manager/manager.ts';
import { channelOf, type RequestTrace } from '../../manager/trace.ts';
import { durationText } from '../queues/durations.ts';
import { ownerOf } from '../queues/show.ts';
import { clearStatus, complain, showStatus } from '../streams.ts';
import { acquiredText } from './steps.ts';

/** How much `run` and `elect` print on stderr besides errors and warnings: nothing, long waits, or every step. */
export type Verbosity = 'quiet' | 'normal' | 'verbose';

/** Milliseconds before a wait is reported. A shorter wait is not reported. */
const SHOW_AFTER = 1000;
/** Milliseconds between two reads of the queue for the report. */
const UPDATE_EVERY = 2000;

const WAITS = channelOf('wait');
const REQUEUED = channelOf('requeued');

/** What is known about a wait. */
interface WaitState {
  readonly name: string;
  /** Position of the own entry and length of the queue. Empty if it is not known. */
  readonly position: string;
  /** Who holds the lock, or why the queue could not be read. */
  readonly rest: string;
}

/**
 * Returns a line about a wait. What matters most comes first, because a narrow terminal cuts the end: the names of the holders.
 * @param waited how long it has lasted so far
 */
const lineOf = ({ name, position, rest }: WaitState, waited = ''): string =>
  `waiting${waited}${position} for ${name}${rest}`;

/** How a wait is reported on stderr. */
interface Report {
  /** Shows the current state of the wait. Returns whether further updates are wanted. */
  update(state: WaitState): boolean;
  /** Called when the wait has ended. */
  end(acquired: boolean): void;
}

/**
 * Reports a wait of over a second on stderr, with the holder and the position in the queue: as a status line on a terminal, otherwise
 * as one line after that second and one when the lock is acquired. Verbose: as one line per change. Also prints a line each time the
 * entry is lost and the wait continues with a new entry. Quiet: prints nothing.
 * @param wait resolves to null if the lock was not acquired
 */
export async function withProgress<T>(
  locks: LockManager,
  name: string,
  verbosity: Verbosity,
  wait: () => Promise<T | null>,
): Promise<T | null> {
  if (verbosity === 'quiet') return wait();
  const report = verbosity === 'verbose' ? changes() : process.stderr.isTTY ? status() : twoLines(name);
  let trace: RequestTrace | undefined;
  const onWait = (message: unknown): void => {
    trace = message as RequestTrace;
  };
  const onRequeued = (message: unknown): void => {
    if (process.stderr.isTTY) clearStatus();
    complain(`${errorText((message as RequestTrace).requeueCause)}; queueing up again`);
  };
  const over = new AbortController();
  subscribe(WAITS, onWait);
  subscribe(REQUEUED, onRequeued);
  void showProgress(locks, name, { uuid: () => trace?.uuid, report, over: over.signal });
  let result: T | null = null;
  try {
    result = await wait();
    return result;
  } finally {
    unsubscribe(WAITS, onWait);
    unsubscribe(REQUEUED, onRequeued);
    over.abort();
    report.end(result !== null);
  }
}

function status(): Report {
  const start = now();
  return {
    update: (state) => {
      showStatus(lineOf(state, ` ${durationText((now() - start) / 1000)}`));
      return true;
    },
    end: clearStatus,
  };
}

function twoLines(name: string): Report {
  const start = now();
  let reported = false;
  return {
    update: (state) => {
      complain(lineOf(state));
      reported = true;
      return false;
    },
    end: (acquired) => {
      if (reported && acquired) complain(acquiredText(name, (now() - start) / 1000));
    },
  };
}

/** Prints a line whenever the state of the wait changes. Prints none for the acquisition: `printSteps` does. */
function changes(): Report {
  let last = '';
  return {
    update: (state) => {
      const line = lineOf(state);
      if (line !== last) complain(line);
      last = line;
      return true;
    },
    end: () => {},
  };
}

interface Wait {
  /** Returns the uuid of the own entry, once there is one. */
  readonly uuid: () => string | undefined;
  readonly report: Report;
  readonly over: AbortSignal;
}

async function showProgress(locks: LockManager, name: string, { uuid, report, over }: Wait): Promise<void> {
  await pause(SHOW_AFTER, over);
  while (!over.aborted) {
    const state = await stateOf(locks, name, uuid);
    if (over.aborted || (state && !report.update(state))) break;
    await pause(UPDATE_EVERY, over);
  }
}

/**
 * Returns the state of the wait. undefined if the own entry holds the lock by now, or is not known yet: etcd may have an entry whose
 * append it has not answered.
 */
async function stateOf(locks: LockManager, name: string, uuid: Wait['uuid']): Promise<WaitState | undefined> {
  try {
    const { held, pending } = await locks.query(name);
    const own = uuid();
    if (own === undefined || held.some((entry) => entry.uuid === own)) return undefined;
    const queue = [...held, ...pending];
    const at = queue.findIndex((entry) => entry.uuid === own) + 1;
    const rest = held.length > 0 ? `, held by ${held.map(ownerOf).join(', ')}` : '';
    return { name, position: at > 0 ? ` at position ${at} of ${queue.length}` : '', rest };
  } catch (error) {
    return { name, position: '', rest: `: ${errorText(error)}` };
  }
}
