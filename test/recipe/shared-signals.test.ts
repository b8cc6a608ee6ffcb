import { setTimeout as sleep, setImmediate as turn } from 'node:timers/promises';
import { expect, onTestFinished, test } from 'vitest';
import { Lock, LockManager } from '../../src/index.ts';
import { freshName, useClient } from '../support/locks.ts';

/** Returns the messages of Node's warnings during the work. */
async function warningsOf(work: () => Promise<unknown>): Promise<string[]> {
  const warnings: string[] = [];
  const note = ({ message }: Error) => warnings.push(message);
  process.on('warning', note);
  onTestFinished(() => void process.off('warning', note));
  await work();
  // Node emits warnings one tick later.
  await turn();
  return warnings;
}

/** Makes 40 simultaneous calls that listen to the signal, as the work under a lock may do. */
async function useMuch(signal: AbortSignal): Promise<void> {
  await Promise.all(Array.from({ length: 40 }, () => sleep(1, undefined, { signal })));
}

test('many calls can listen to the signal of a hold without a memory-leak warning', async () => {
  const locks = new LockManager(useClient());
  expect(await warningsOf(() => locks.request(freshName(), ({ signal }) => useMuch(signal)))).toEqual([]);
});

test('many calls can listen to the signal of a Lock without a memory-leak warning', async () => {
  const lock = new Lock(useClient(), freshName());
  await lock.acquire();
  expect(await warningsOf(() => useMuch(lock.signal))).toEqual([]);
  await lock.release();
});
