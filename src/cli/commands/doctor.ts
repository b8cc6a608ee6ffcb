import { resolveSrv } from 'node:dns/promises';
import { Command } from 'commander';
import { checkSeconds } from '../../checks.ts';
import { discover } from '../../http/failover/endpoints.ts';
import { originsOf } from '../../http/options.ts';
import { type ClientSettings, checkOptions, type V2ClientOptions } from '../../v2/options.ts';
import { number } from '../arguments.ts';
import { clientOptions, connectionOf } from '../connection.ts';
import { basisOf } from '../doctor/basis.ts';
import type { Facts } from '../doctor/facts.ts';
import { hasNoFailure, judge } from '../doctor/judge.ts';
import { probe } from '../doctor/probe.ts';
import { report } from '../doctor/report.ts';
import { checked, ExitCode } from '../exit-codes.ts';
import { explain } from '../help.ts';
import { JSON_FLAG, outcome } from '../session.ts';
import { print, printJson } from '../streams.ts';

/** Timeout in seconds for each of the two groups of parallel requests that `probe` sends to a member. */
const READ_TIMEOUT = 5;

interface Flags {
  readonly json?: true;
  readonly ttl?: number;
}

const ABOUT = `
Checks per endpoint: connection, version, v2 API, health, duration of a quorum read, permissions, and the
order of key names.
Checks for the cluster: leader, members, cluster ID, and clock differences.

Exit code 0 means that locks are safe to use. Exit code 1 means that they are unsafe or impossible.`;

/** `etcd-v2-lock doctor`: checks each member on its own, and the cluster as a whole. */
export function doctorCommand(): Command {
  const command = new Command('doctor')
    .description('Check each etcd member and the cluster, and report problems with advice.')
    .option(
      '--ttl <seconds>',
      'TTL of your locks, to assess clocks and response times (default: the shortest remaining TTL of an entry, or 30)',
      number,
    )
    .option(...JSON_FLAG)
    .addHelpText('after', ABOUT)
    .action(async (_options: unknown, command: Command) => {
      process.exitCode = await outcome(() => doctor(clientOptions(connectionOf(command)), command.opts<Flags>()));
    });
  return explain(command, {
    endings: ['no', 'unreachable'],
    examples: [
      ['etcd-v2-lock doctor --endpoints etcd-1:2379,etcd-2:2379,etcd-3:2379', 'check a cluster of three members'],
      ['etcd-v2-lock doctor --json --ttl 15', 'print JSON, and assess clocks for locks with a TTL of 15 s'],
    ],
  });
}

async function doctor(connection: V2ClientOptions, { json, ttl }: Flags): Promise<number> {
  if (ttl !== undefined) checked(() => checkSeconds('--ttl', ttl));
  const facts = await examine(connection, ttl);
  const findings = judge(facts);
  const ok = hasNoFailure(findings);
  if (json) printJson({ ok, basis: basisOf(facts), endpoints: facts.endpoints, findings });
  else for (const line of report(findings)) print(line);
  return ok ? ExitCode.ok : ExitCode.no;
}

async function examine(options: V2ClientOptions, ttl: number | undefined): Promise<Facts> {
  const settings = checked(() => checkOptions({ ...options, readTimeout: READ_TIMEOUT }));
  const urls = settings.endpoints ?? (await discoverMembers(settings));
  const given = settings.endpoints ? originsOf(options) : urls;
  const endpoints = await Promise.all(urls.map((url) => probe(url, settings)));
  return { lockPrefix: settings.lockPrefix, user: options.username, ttl, given, endpoints };
}

const discoverMembers = ({ srvDomain = '', tls }: ClientSettings): Promise<readonly string[]> =>
  discover(srvDomain, Object.keys(tls).length > 0 ? 'https' : 'http', resolveSrv);
