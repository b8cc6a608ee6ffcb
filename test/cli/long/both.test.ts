import { expect, inject, test } from 'vitest';
import { keysOf } from '../../support/both.ts';
import { runCli } from '../../support/cli.ts';
import { freshName } from '../../support/locks.ts';
import { ask } from '../../support/queues.ts';

const COMMAND = ['sh', '-c', 'echo $ETCD_LOCK_TOKEN $ETCD_LOCK_TOKEN_V2 $ETCD_LOCK_TOKEN_V3'];

test.each([
  ['--api both', ['--api', 'both'], {}],
  ['ETCD_LOCK_API=both', [], { ETCD_LOCK_API: 'both' }],
])('run with %s holds the lock in both stores, and passes both tokens on', async (_, flags, env) => {
  const name = freshName();
  const args = [...flags, 'run', name, '--', ...COMMAND];
  const { code, stdout, stderr } = await runCli(args, { ETCD_ENDPOINTS: inject('etcd'), ...env });
  expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
  const [token, v2, v3] = stdout.trim().split(' ').map(BigInt);
  expect(token).toBe(v2);
  expect(v3).toBeGreaterThan(0n);
  expect(await keysOf(name)).toEqual({ v2: [], v3: [] });
});

test('run in one store waits for one in both', async () => {
  const name = freshName();
  const nested = (api: string) => `ETCD_LOCK_API=${api} "$0" "$1" run ${name} --if-available -- true; echo $?`;
  const script = [nested('v2'), nested('v3'), nested('both')].join('; ');
  const cli = [process.execPath, 'dist/cli/main.js'];
  const { stdout } = await ask(['--api', 'both', 'run', name, '--', 'sh', '-c', script, ...cli]);
  expect(stdout).toBe('1\n1\n1\n');
});

test.each(['ls', 'inspect x', 'watch x', 'release x', 'prune', 'doctor'])(
  '%s is refused with --api both before any request',
  async (command) => {
    const args = ['--api', 'both', ...command.split(' ')];
    const { code, stderr } = await runCli(args, { ETCD_ENDPOINTS: 'http://127.0.0.1:1' });
    expect(code).toBe(64);
    expect(stderr).toContain('--api both');
  },
);
