import { Command } from 'commander';
import { EtcdClient } from '../../client.ts';
import { connectionOf, storeOptions, withFixedPassword } from '../connection.ts';
import { runDemo } from '../demo/run-demo.ts';
import { checked } from '../exit-codes.ts';
import { ASKING, explain } from '../help.ts';
import { outcome } from '../session.ts';
import { untilSignalled } from '../signals.ts';

const ABOUT = `
The demo needs no etcd: its server is in memory. If an option or a variable names an etcd, the demo uses that one, and removes
its lock there at the end.

Four processes acquire the lock three times each. With the v2 API, one of them is a Python program with python-etcd, if python3
can import it.

With --crash, there are three processes, which write to one resource:

- The first holder is killed. The second one gets the lock when the entry of the first one has expired.
- The second holder is stopped by SIGSTOP, so it cannot notice that its entry expires. The third one gets the lock.
- The second one continues, and writes at once. A fence at the resource refuses this write, because its fencing token is
  lower than that of the third one.`;

/** `etcd-v2-lock demo`: shows processes that contend for a lock. */
export function demoCommand(): Command {
  const command = new Command('demo')
    .description('Show in ten seconds how several processes contend for one lock.')
    .option('--crash', 'kill one holder, and stop another one until it has lost the lock')
    .addHelpText('after', ABOUT)
    .action(async ({ crash = false }: { crash?: boolean }, self: Command) => {
      process.exitCode = await outcome(async () => {
        const options = await withFixedPassword(storeOptions(connectionOf(self)));
        checked(() => new EtcdClient(options));
        return untilSignalled((signal) => runDemo(options, { crash, signal }));
      });
    });
  return explain(command, {
    exitReasons: [...ASKING, 'no', 'signalled'],
    meanings: {
      no: 'two processes held the lock at the same time, the tokens did not grow, or a late write was not refused',
    },
    examples: [
      ['etcd-v2-lock demo', 'four processes take turns'],
      ['etcd-v2-lock demo --crash --api v3', 'on etcd v3, a holder is killed, and another one is stopped'],
    ],
  });
}
