import type { Command } from 'commander';
import type { EtcdClient } from '../../client.ts';
import { LockManager } from '../../manager/manager.ts';
import { clientOptions } from '../connection.ts';
import { checked, ExitCode } from '../exit-codes.ts';
import { ASKING, explain } from '../help.ts';
import { IDENTITY_FLAG, LABEL_FLAG, quietOption, TTL_FLAG, VERBOSE_FLAG } from '../job/options.ts';
import { RunningCommand } from '../job/running-command.ts';
import { byHolding, runUnderLock, verbosityOf } from '../job/under-lock.ts';
import { withClient } from '../session.ts';

interface Flags {
  readonly value?: string;
  readonly ttl: number;
  readonly identity?: string;
  readonly label?: string;
  readonly verbose?: boolean;
  readonly quiet?: boolean;
}

const ABOUT = `
The holder of the lock of this name is the leader, and the other candidates wait in its queue. The command runs for one
term. "elect" waits without a limit, even if etcd is not up yet. When the command has ended or the lock is lost, "elect"
ends, too. To campaign again, start it again, for example with Restart=always in a systemd unit.

The value of the leader is in its entry in the queue. Node.js programs get it by election.leader() and
election.observe(), others by "inspect", "ls" and "watch" with --json.

The end of the options, the environment of the command, signals, messages and a lost lock are as with "run". See
"etcd-v2-lock help run".`;

/** `etcd-v2-lock elect`: runs a command while leading. */
export function electCommand(): Command {
  const command = new RunningCommand('elect')
    .usage('[options] <name> -- <command> [args...]')
    .description("Wait to be elected, and run a command as the leader. Exits with the command's exit code.")
    .argument('<name>', 'name of the election and of its lock')
    .argument('<command...>', 'command to run, without a shell')
    .option('--value <text>', 'text that the leader publishes, such as its URL. Empty: none (default)')
    .option(...TTL_FLAG)
    .option(...IDENTITY_FLAG)
    .option(...LABEL_FLAG)
    .option(...VERBOSE_FLAG)
    .addOption(quietOption())
    .addHelpText('after', ABOUT)
    .action(withClient(elect, clientOptions));
  return explain(command, {
    exitReasons: [...ASKING, 'lost', 'cannotRun', 'notFound', 'signalled'],
    meanings: {
      lost: 'lock lost or about to be lost',
      unreachable: 'the server does not have the API of your locks',
    },
    examples: [
      [
        'etcd-v2-lock elect scheduler --value http://10.0.0.7:8080 -- ./scheduler',
        'on several hosts: one of them runs the scheduler, and the next one when that ends',
      ],
    ],
  });
}

async function elect(client: EtcdClient, command: Command): Promise<number> {
  const [name = '', ...job] = command.args;
  const flags = command.opts<Flags>();
  const { value, ttl, identity, label } = flags;
  const locks = new LockManager(client);
  const election = checked(() => locks.elect(name, { value, ttl, identity, label }));
  const acquireAndRun = byHolding(async (signal) => {
    const campaign = election.campaign({ signal });
    const { value: term } = await campaign.next();
    return term ? { held: term, release: () => campaign.return() } : null;
  });
  const how = { subcommand: 'elect', ttl, maxHold: 0, verbosity: verbosityOf(flags) };
  return (await runUnderLock({ locks, name, command: job, ...how, acquireAndRun })) ?? ExitCode.no;
}
