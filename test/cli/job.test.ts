import { expect, test } from 'vitest';
import { CliError } from '../../src/cli/exit-codes.ts';
import { startJob } from '../../src/cli/job/job.ts';
import type { Starter } from '../../src/cli/job/starter.ts';
import { EtcdLockLost } from '../../src/errors.ts';
import type { Held } from '../../src/manager/held.ts';
import { rejection } from '../support/clients.ts';

test('a command is not started if the lock is already lost, for example because "run" was stopped in between', async () => {
  const assertHeld = (): void => {
    throw new EtcdLockLost('lock report was lost');
  };
  const starter = { start: () => expect.unreachable() } as unknown as Starter;
  const error = await rejection(startJob(['backup', '/srv'], { assertHeld } as Held, starter), CliError);
  expect(error).toMatchObject({ message: 'lock report was lost; backup was not started', exitCode: 75 });
});
