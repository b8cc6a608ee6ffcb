import { expect, onTestFinished, test } from 'vitest';
import { runCli } from '../../support/cli.ts';
import { freshName, raw } from '../../support/locks.ts';
import { startOnTerminal } from '../../support/terminal.ts';
import { onEtcd } from '../running.ts';

const BOLD = '\u001b[1m';

/** Returns the terminal output of `ls` for a lock that is held. */
async function shown(env: Record<string, string>): Promise<string> {
  const name = freshName();
  const { key } = (await raw('POST', `/_locks/${name}`, { value: 'theirs', ttl: '600' })).body.node;
  onTestFinished(async () => void (await raw('DELETE', key)));
  const ls = [process.execPath, 'dist/cli/main.js', 'ls', name];
  const terminal = startOnTerminal(ls, { ...onEtcd(), NO_COLOR: '', ...env });
  expect(await terminal.ended).toBe(0);
  expect(terminal.shown()).toContain(name);
  return terminal.shown();
}

test('output on a terminal is coloured', async () => {
  expect(await shown({})).toContain(BOLD);
});

test.each([{ NO_COLOR: '1' }, { TERM: 'dumb' }])('output on a terminal is not coloured with %j', async (env) => {
  expect(await shown(env)).not.toContain('\u001b');
});

test('output that is not on a terminal has no colours and no remarks', async () => {
  const { stdout, stderr } = await runCli(['ls', freshName()], onEtcd());
  expect({ stdout, stderr }).toEqual({ stdout: '', stderr: '' });
  expect((await runCli(['doctor'], onEtcd())).stdout).not.toContain('\u001b');
});

test('an empty result prints a remark on a terminal', async () => {
  const terminal = startOnTerminal([process.execPath, 'dist/cli/main.js', 'ls', freshName()], onEtcd());
  expect(await terminal.ended).toBe(0);
  expect(terminal.shown()).toMatch(/no lock with the prefix .* is held/);
});
