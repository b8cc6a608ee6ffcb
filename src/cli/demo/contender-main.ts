// A contender of `demo`, in a process of its own: acquires a lock several times, writes while it holds it, and reports each step.
import { createInterface } from 'node:readline';
import { ignore, pause } from '../../base/cancellation.ts';
import { errorText } from '../../base/error-text.ts';
import { Deadline } from '../../base/time.ts';
import { EtcdClient } from '../../client.ts';
import { EtcdLockLost } from '../../errors.ts';
import type { Held } from '../../manager/held.ts';
import { LockManager } from '../../manager/manager.ts';
import { complain, printJson } from '../streams.ts';
import { machineClock, type Report, type Task } from './protocol.ts';

/** Milliseconds between two writes. */
const WRITE_EVERY = 200;
/** Seconds to wait for the lock. */
const TIMEOUT = 60;

/** Aborted when the contender is to release the lock. */
const release = new AbortController();

function report(is: Report['is'], token?: bigint): void {
  printJson({ is, at: machineClock(), token });
}

async function contend({ client: options, name, label, ttl, turns, hold }: Task): Promise<void> {
  const client = new EtcdClient(options);
  const locks = new LockManager(client, { ttl, label, timeout: TIMEOUT });
  for (let turn = 0; turn < turns; turn += 1) {
    report('waits');
    try {
      await locks.request(name, (held) => work(held, hold));
    } catch (error) {
      if (!(error instanceof EtcdLockLost)) throw error;
      report('lost');
    }
  }
  await client.close();
}

/** Writes without a look at the lock just before, as many programs do. Only a fence can refuse a late write. */
async function work({ fencingToken, signal }: Held, hold: number): Promise<void> {
  report('holds', fencingToken);
  const end = Deadline.after(hold);
  while (!end.passed && !signal.aborted && !release.signal.aborted) {
    await pause(Math.min(WRITE_EVERY, end.remaining), signal, release.signal);
    report('writes', fencingToken);
  }
  if (!signal.aborted) report('releases');
}

// `demo` handles these: a terminal sends ^C to all processes of a job.
for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP', 'SIGQUIT'] as const) process.on(signal, ignore);

const lines = createInterface(process.stdin).on('close', () => process.exit());
lines.once('line', (task) => {
  lines.on('line', () => release.abort());
  contend(JSON.parse(task) as Task).then(
    () => process.exit(),
    (error: unknown) => {
      complain(errorText(error));
      process.exit(1);
    },
  );
});
report('ready');
