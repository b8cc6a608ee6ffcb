import { expect, onTestFinished, test } from 'vitest';
import { startCli } from '../support/cli.ts';
import { freshName, raw } from '../support/locks.ts';
import { onEtcd } from './running.ts';

/** Makes the entry of another holder, and a directory that is empty, until the end of the test. Returns the names of the locks. */
async function twoLocks(): Promise<{ readonly held: string; readonly unused: string }> {
  const [held, unused] = [freshName(), freshName()];
  await raw('POST', `/_locks/${held}`, { value: 'theirs', ttl: '600' });
  await raw('PUT', `/_locks/${unused}`, { dir: 'true' });
  onTestFinished(async () => {
    await raw('DELETE', `/_locks/${held}?recursive=true`);
    await raw('DELETE', `/_locks/${unused}?dir=true`);
  });
  return { held, unused };
}

// The other tests of these commands call them inside their own process: there a socket or a timer that is left is not noticed.
test.each([
  ['ls HELD', 'theirs'],
  ['inspect HELD', 'theirs'],
  ['release HELD --uuid theirs --force', 'theirs'],
  ['prune --dry-run', 'UNUSED'],
  ['doctor', 'etcd'],
  ['completion bash', 'complete'],
  ['help ls', 'Usage'],
])('%s prints %s, without a warning, and its process ends with code 0', async (line, expected) => {
  const { held, unused } = await twoLocks();
  const named = (text: string): string => text.replace('HELD', held).replace('UNUSED', unused);
  const { code, stdout, stderr } = await startCli(named(line).split(' '), onEtcd()).result;
  expect(code).toBe(0);
  expect(stdout + stderr).toContain(named(expected));
  // Such as Node's about leaks and deprecated functions.
  expect(stderr).not.toMatch(/warning/i);
});
