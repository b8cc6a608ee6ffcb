import { expect, onTestFinished, test, vi } from 'vitest';
import { CliError } from '../../../src/cli/exit-codes.ts';
import { startJob } from '../../../src/cli/job/job.ts';
import type { Starter, StartOptions } from '../../../src/cli/job/starter.ts';
import { EtcdLockLost } from '../../../src/errors.ts';
import type { Held } from '../../../src/manager/held.ts';
import { rejection } from '../../support/clients.ts';

test('a command is not started if the lock is already lost, for example because "run" was stopped in between', async () => {
  const assertHeld = (): void => {
    throw new EtcdLockLost('lock report was lost');
  };
  const starter = { start: () => expect.unreachable() } as unknown as Starter;
  const error = await rejection(startJob(['backup', '/srv'], { assertHeld } as Held, starter), CliError);
  expect(error).toMatchObject({ message: 'lock report was lost; backup was not started', exitCode: 75 });
});

test('a command gets no variables of an outer run: they would describe another lock', async () => {
  for (const name of ['TOKEN', 'TOKEN_V2', 'TOKEN_V3', 'TICK', 'MISSED']) vi.stubEnv(`ETCD_LOCK_${name}`, 'outer');
  onTestFinished(() => void vi.unstubAllEnvs());
  const held: Partial<Held> = { assertHeld: () => {}, fencingToken: 7n, fencingTokens: { v3: 7n } };
  let started: StartOptions['env'] = {};
  const start: Starter['start'] = async (_, { env }) => {
    started = env;
    return { pid: process.pid, ended: Promise.resolve(0) };
  };
  await startJob(['backup'], held as Held, { start } as Starter, { ETCD_LOCK_MISSED: '3' });
  const { ETCD_LOCK_TOKEN, ETCD_LOCK_TOKEN_V2, ETCD_LOCK_TOKEN_V3, ETCD_LOCK_TICK, ETCD_LOCK_MISSED } = started;
  expect([ETCD_LOCK_TOKEN, ETCD_LOCK_TOKEN_V2, ETCD_LOCK_TOKEN_V3]).toEqual(['7', undefined, '7']);
  expect([ETCD_LOCK_TICK, ETCD_LOCK_MISSED]).toEqual([undefined, '3']);
});
