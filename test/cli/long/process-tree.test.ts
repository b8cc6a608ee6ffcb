// A system without free file descriptors or processes: nobody can list the processes of a job.
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { expect, onTestFinished, test, vi } from 'vitest';
import { ProcessTree } from '../../../src/cli/job/processes/process-tree.ts';
import { processes } from '../../../src/cli/job/processes/processes.ts';
import * as streams from '../../../src/cli/streams.ts';
import { untilGone } from '../../support/processes.ts';
import { until } from '../../support/until.ts';

vi.mock(import('../../../src/cli/job/processes/processes.ts'), { spy: true });

/** Starts a command and returns its tree, whose processes cannot be listed. */
function startTree(grouped: boolean, command: string) {
  const root = spawn('sh', ['-c', command], { detached: grouped, stdio: ['ignore', 'pipe', 'ignore'] });
  onTestFinished(() => void root.kill('SIGKILL'));
  const complain = vi.spyOn(streams, 'complain').mockReturnValue();
  vi.mocked(processes).mockImplementation(() => {
    throw new Error('ENFILE: file table overflow');
  });
  onTestFinished(() => void vi.restoreAllMocks());
  return {
    output: root.stdout,
    ended: once(root, 'exit'),
    tree: new ProcessTree({ root: Number(root.pid), grouped, mark: 'A=1' }),
    complain,
  };
}

test('a job whose processes cannot be listed counts as alive until it has ended, and gets signals', async () => {
  const { ended, tree } = startTree(false, 'exec sleep 600');
  expect(tree.alive).toBe(true);
  tree.send('SIGTERM', 'SIGCONT');
  expect(await ended).toEqual([null, 'SIGTERM']);
  expect(tree.alive).toBe(false);
});

test('a job whose processes cannot be listed counts as alive until the last of its process group has ended', async () => {
  const { output, ended, tree } = startTree(true, 'sleep 600 & echo $!');
  const [[child]] = await Promise.all([once(output, 'data'), ended]);
  expect(tree.alive).toBe(true);
  tree.kill();
  await untilGone(Number(child));
  await until(
    () => tree.alive,
    (alive) => !alive,
  );
});

test('a job whose processes cannot be listed is killed, with one complaint', async () => {
  const { ended, tree, complain } = startTree(false, 'exec sleep 600');
  expect(tree.alive).toBe(true);
  tree.kill();
  expect(await ended).toEqual([null, 'SIGKILL']);
  expect(complain.mock.calls.flat()).toEqual([expect.stringContaining('ENFILE: file table overflow')]);
});
