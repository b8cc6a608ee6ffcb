// `run` in a PID namespace whose /proc shows the processes of another one, as with `unshare -pf` or in some containers.
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, readFileSync } from 'node:fs';
import { text } from 'node:stream/consumers';
import { expect, onTestFinished, test } from 'vitest';
import { freshName, queueOn, raw } from '../../support/locks.ts';
import { temporaryDirectory } from '../../support/temporary.ts';
import { until } from '../../support/until.ts';
import { onEtcd } from '../running.ts';

/** Needs no root where the kernel lets users make namespaces. */
const UNSHARE = ['--user', '--map-root-user', '--pid', '--fork', '--kill-child'];

/** Runs a command as PID 1 of a new PID namespace. The end of the test kills all processes in the namespace. */
async function inNamespace(command: readonly string[], ...flags: readonly string[]) {
  const child = spawn('unshare', [...UNSHARE, ...flags, '--', ...command], {
    env: { ...process.env, ...onEtcd() },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  onTestFinished(() => void child.kill('SIGKILL'));
  const [[code], stdout, stderr] = await Promise.all([once(child, 'exit'), text(child.stdout), text(child.stderr)]);
  return { code, stdout, stderr };
}

const run = (name: string, ...args: readonly string[]): string[] => [
  process.execPath,
  'dist/cli/main.js',
  'run',
  name,
  ...args,
];

/** Runs its arguments as a child, so that they are not PID 1. */
const AS_CHILD = ['sh', '-c', '"$@"; exit $?', 'sh'];

const ZOMBIES =
  'etcd-v2-lock: running as PID 1, which cannot reap orphaned processes: they remain as zombies. Use an init, as with "docker run --init"\n';

test.each([
  ['as PID 1, which it warns about', [], [], ZOMBIES],
  ['as PID 1 with --quiet', [], ['--quiet'], ''],
  ['as another process', AS_CHILD, [], ''],
])('run ends with the exit code of the command, %s', async (_, parent, flags, stderr) => {
  const name = freshName();
  const command = run(name, ...flags, '--', 'sh', '-c', 'exit 13');
  expect(await inNamespace([...parent, ...command])).toEqual({ code: 13, stdout: '', stderr });
  expect(await queueOn(name)).toEqual([]);
});

test('run kills the command and its process group if the lock is lost, and says why it cannot search for others', async () => {
  const [name, pids] = [freshName(), `${temporaryDirectory()}/pids`];
  const job = `trap '' TERM; sh -c "sleep 600; sleep 600" & echo $$ $! > ${pids}; wait; wait`;
  const untilGone = `"$@"; code=$?; for pid in $(cat ${pids}); do while kill -0 $pid 2> /dev/null; do sleep 0.1; done; done; exit $code`;
  const command = run(name, '--ttl', '12', '--', 'sh', '-c', job);
  const ended = inNamespace(['sh', '-c', untilGone, 'sh', ...command]);
  await until(
    () => existsSync(pids) && readFileSync(pids, 'utf8'),
    (written) => written !== '' && written !== false,
  );
  for (const { key } of await queueOn(name)) await raw('DELETE', key);
  const { code, stderr } = await ended;
  expect({ code, stderr: stderr.split('\n') }).toEqual({
    code: 75,
    stderr: [
      expect.stringMatching(
        /^etcd-v2-lock: cannot search for the children of process \d+: \/proc does not show the processes of this PID namespace$/,
      ),
      expect.stringMatching(/; sh was stopped$/),
      '',
    ],
  });
});

const LIST = `try { console.log(JSON.stringify(require('./dist/cli/job/processes/processes.js').processes().map(({ pid }) => pid))); }
  catch ({ message }) { console.log(message); }`;

test('processes are listed from the /proc of the own namespace, never from that of another', async () => {
  const list = [process.execPath, '-e', LIST];
  expect(await inNamespace(list, '--mount-proc')).toEqual({ code: 0, stdout: '[1]\n', stderr: '' });
  // The other namespace has a process 1 too.
  expect(await inNamespace(list)).toEqual({
    code: 0,
    stdout: '/proc does not show the processes of this PID namespace\n',
    stderr: '',
  });
});
