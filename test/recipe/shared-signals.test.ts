import { setTimeout as sleep, setImmediate as turn } from 'node:timers/promises';
import { expect, onTestFinished, test } from 'vitest';
import { Lock, LockManager } from '../../src/index.ts';
import { freshName, useClient } from '../support/locks.ts';

/** What Node warned of while this ran. */
async function warningsOf(work: () => Promise<unknown>): Promise<string[]> {
  const warnings: string[] = [];
  const note = ({ message }: Error) => warnings.push(message);
  process.on('warning', note);
  onTestFinished(() => void process.off('warning', note));
  await work();
  // Warnings are told a tick later.
  await turn();
  return warnings;
}

/** As many calls as work under a lock may make at a time, each of which listens. */
async function useMuch(signal: AbortSignal): Promise<void> {
  await Promise.all(Array.from({ length: 40 }, () => sleep(1, undefined, { signal })));
}

test('the signal of a hold can be handed to many calls without a warning of a leak', async () => {
  const locks = new LockManager(useClient());
  expect(await warningsOf(() => locks.request(freshName(), ({ signal }) => useMuch(signal)))).toEqual([]);
});

test('so can that of a Lock', async () => {
  const lock = new Lock(useClient(), freshName());
  await lock.acquire();
  expect(await warningsOf(() => useMuch(lock.signal))).toEqual([]);
  await lock.release();
});
