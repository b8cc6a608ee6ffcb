// A system without free file descriptors or processes: nobody can list the processes of a job.
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { expect, onTestFinished, test, vi } from 'vitest';
import { ProcessTree } from '../../src/cli/job/processes/process-tree.ts';
import { processes } from '../../src/cli/job/processes/processes.ts';
import * as streams from '../../src/cli/streams.ts';

vi.mock(import('../../src/cli/job/processes/processes.ts'), { spy: true });

function startTree() {
  const root = spawn('sleep', ['600'], { stdio: 'ignore' });
  onTestFinished(() => void root.kill('SIGKILL'));
  const complain = vi.spyOn(streams, 'complain').mockReturnValue();
  vi.mocked(processes).mockImplementation(() => {
    throw new Error('ENFILE: file table overflow');
  });
  onTestFinished(() => void vi.restoreAllMocks());
  return {
    ended: once(root, 'exit'),
    tree: new ProcessTree({ root: Number(root.pid), grouped: false, mark: 'A=1' }),
    complain,
  };
}

test('a job whose processes cannot be listed counts as alive, and gets signals', async () => {
  const { ended, tree } = startTree();
  expect(tree.alive).toBe(true);
  tree.send('SIGTERM', 'SIGCONT');
  expect(await ended).toEqual([null, 'SIGTERM']);
});

test('a job whose processes cannot be listed is killed, with one complaint', async () => {
  const { ended, tree, complain } = startTree();
  expect(tree.alive).toBe(true);
  tree.kill();
  expect(await ended).toEqual([null, 'SIGKILL']);
  expect(complain.mock.calls.flat()).toEqual([expect.stringContaining('ENFILE: file table overflow')]);
});
