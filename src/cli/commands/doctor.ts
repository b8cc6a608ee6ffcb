import { Command, Option } from 'commander';
import { checkSeconds } from '../../base/checks.ts';
import { EtcdClient, type EtcdClientOptions } from '../../client.ts';
import type { Surveyor } from '../../recipe/survey.ts';
import { number } from '../arguments.ts';
import { clientOptions, connectionOf, type StoreOptions, storeOptions, withFixedPassword } from '../connection.ts';
import { accessBy } from '../doctor/access.ts';
import { basisOf } from '../doctor/basis.ts';
import { examine, examineMove } from '../doctor/examine.ts';
import type { Facts } from '../doctor/facts.ts';
import { storesOf } from '../doctor/findings/stores.ts';
import { hasNoFailure, judge } from '../doctor/judge.ts';
import { linesOf, report } from '../doctor/report.ts';
import { checked, ExitCode } from '../exit-codes.ts';
import { ASKING, explain } from '../help.ts';
import { JSON_FLAG, outcome } from '../session.ts';
import { print, printJson } from '../streams.ts';

interface Flags {
  readonly json?: true;
  readonly ttl?: number;
  readonly moving?: true;
}

const ABOUT = `
Checks per endpoint: connection, version, health, permissions, duration of a quorum read, and whether the server has the
API of your locks: v2, or with --api v3 the JSON gateway.
Checks for the cluster: leader, members, and cluster ID.
With v2 also: the order of key names, and clock differences.
With v3 also: keys without a lease, members that advertise a URL without the gateway, and on etcd 3.5 whether etcd 3.6
can be started.
Reports for information: which APIs each member has, and which locks are in which of the two stores.

With v2, doctor creates a test key below /_etcd-v2-lock-doctor and removes it. With v3, it changes nothing. If a member runs
etcd 3.6, doctor sends nothing to the v2 API of the others that would make that member panic.

Exit code 0 means that no failure was found. Read the warnings: one of them can mean that two clients hold a lock at the
same time. Exit code 1 means that locks are unsafe or impossible. With --moving, exit code 0 does not mean that the next
step is safe: read the output.`;

/** `etcd-v2-lock doctor`: checks each member on its own, and the cluster as a whole. */
export function doctorCommand(): Command {
  const command = new Command('doctor')
    .description('Check each etcd member and the cluster, and report problems with advice.')
    .option(
      '--ttl <seconds>',
      'TTL of your locks, to assess clocks and response times (default: on v2 the shortest remaining TTL, on v3 the shortest TTL of a lease; 30 without entries)',
      number,
    )
    .addOption(
      new Option(
        '--moving',
        'check only a move from v2 to v3: watch both stores for 5 to 25 seconds. Reports which clients use v2, v3 or both, and whether the next step is safe',
      ).conflicts('ttl'),
    )
    .option(...JSON_FLAG)
    .addHelpText('after', ABOUT)
    .action(async (_options: unknown, command: Command) => {
      const flags = command.opts<Flags>();
      process.exitCode = await outcome(() =>
        flags.moving
          ? doctorMove(clientOptions(connectionOf(command)), flags)
          : doctor(storeOptions(connectionOf(command)), flags),
      );
    });
  return explain(command, {
    exitReasons: ['no', ...ASKING],
    meanings: {
      no: 'failure found, also if etcd cannot be reached or refuses access',
      unreachable: 'with --moving, or if a DNS lookup fails: cannot connect to etcd',
      refused: 'with --moving: wrong or missing credentials or certificate, or permission denied',
    },
    examples: [
      ['etcd-v2-lock doctor --endpoints etcd-1:2379,etcd-2:2379,etcd-3:2379', 'check a cluster of three members'],
      ['etcd-v2-lock doctor --api v3', 'check the v3 gateway of the local etcd'],
      ['etcd-v2-lock doctor --moving', 'list the clients that still use v2 during a move to v3'],
      ['etcd-v2-lock doctor --json --ttl 15', 'print JSON, and assess clocks for locks with a TTL of 15 s'],
    ],
  });
}

async function doctor(connection: StoreOptions, { json, ttl }: Flags): Promise<number> {
  if (ttl !== undefined) checked(() => checkSeconds('--ttl', ttl));
  const options = await withFixedPassword(connection);
  const access = checked(() => accessBy(options));
  const facts = await examine(options, access, { ttl, testKeys: true });
  const findings = judge(facts);
  const ok = hasNoFailure(findings);
  if (json) printJson({ ok, ...dataOf(facts), findings });
  else for (const line of report(findings)) print(line);
  return ok ? ExitCode.ok : ExitCode.no;
}

async function doctorMove({ api: _, ...options }: EtcdClientOptions, { json }: Flags): Promise<number> {
  const access = checked(() => accessBy(options));
  const { kinds, findings } = await withSurveyors(options, (v2, v3) => examineMove(access, { v2, v3 }));
  const ok = hasNoFailure(findings);
  if (json) printJson({ ok, ...kinds, findings });
  else for (const line of findings.flatMap(linesOf)) print(line);
  return ok ? ExitCode.ok : ExitCode.no;
}

async function withSurveyors<T>(
  options: EtcdClientOptions,
  work: (v2: Surveyor, v3: Surveyor) => Promise<T>,
): Promise<T> {
  const v2 = checked(() => new EtcdClient({ ...options, api: 'v2' }));
  const v3 = checked(() => new EtcdClient({ ...options, api: 'v3' }));
  try {
    return await work(v2.surveyor, v3.surveyor);
  } finally {
    await Promise.all([v2.close(), v3.close()]);
  }
}

/** Returns the measurements for JSON output. The names of all locks are printed once, and not for each member. */
function dataOf(facts: Facts): object {
  const endpoints = facts.endpoints.map(({ locks: _locks, ...others }) => others);
  return { api: facts.api, basis: basisOf(facts), stores: storesOf(facts.endpoints), endpoints };
}
