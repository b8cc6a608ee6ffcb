// A thread that starts the command of `run` or `elect`. It blocks its event loop until the main thread has read the wait status of
// the command. Otherwise Node would discard the wait status before that.
import { spawn } from 'node:child_process';
import { parentPort } from 'node:worker_threads';
import type { StartReply, StartRequest } from './starter.ts';

parentPort?.once('message', ({ command, cwd, env, detached, ended }: StartRequest) => {
  const reply = (message: StartReply): void => parentPort?.postMessage(message);
  const [program = '', ...args] = command;
  const child = spawn(program, args, { cwd, detached, env, stdio: 'inherit' });
  child.on('error', ({ message, code }: NodeJS.ErrnoException) => reply({ is: 'failed', message, code }));
  child.on('exit', (code, signal) => reply({ is: 'ended', code, signal }));
  if (child.pid === undefined) return;
  reply({ is: 'started', pid: child.pid });
  Atomics.wait(ended, 0, 0);
});
