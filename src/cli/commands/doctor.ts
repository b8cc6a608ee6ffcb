import { resolveSrv } from 'node:dns/promises';
import { Command } from 'commander';
import { checkSeconds } from '../../checks.ts';
import { discover } from '../../http/failover/endpoints.ts';
import { type ClientSettings, checkOptions, type EtcdClientOptions } from '../../v2/options.ts';
import { number } from '../arguments.ts';
import { clientOptions, connectionOf } from '../connection.ts';
import { basisOf } from '../doctor/basis.ts';
import type { Facts } from '../doctor/facts.ts';
import { isWell, judge } from '../doctor/judge.ts';
import { probe } from '../doctor/probe.ts';
import { report } from '../doctor/report.ts';
import { checked, ExitCode } from '../exit-codes.ts';
import { explain } from '../help.ts';
import { JSON_FLAG, outcome } from '../session.ts';
import { print, printJson } from '../streams.ts';

/** Seconds a member gets to answer, twice. */
const READ_TIMEOUT = 3;

interface Flags {
  readonly json?: true;
  readonly ttl?: number;
}

/** `etcd-v2-lock doctor`: looks at each member by itself. */
export function doctorCommand(): Command {
  const command = new Command('doctor')
    .description(
      'Look at each endpoint and tell what is wrong, and what to do: whether it can be reached, its version, the v2 API, ' +
        'leader, health, the time of a quorum read, passwords, and how far the clocks of the members differ. ' +
        'It is well when locks can be relied upon; else they are unsafe or impossible.',
    )
    .option(
      '--ttl <seconds>',
      'TTL of your locks, to judge clocks and answers by (default: what entries have left)',
      number,
    )
    .option(...JSON_FLAG)
    .action(async (_options: unknown, command: Command) => {
      process.exitCode = await outcome(() => doctor(clientOptions(connectionOf(command)), command.opts<Flags>()));
    });
  return explain(command, {
    endings: ['no', 'unreachable'],
    examples: [
      ['etcd-v2-lock doctor --endpoints etcd-1:2379,etcd-2:2379,etcd-3:2379', 'name all members: each is looked at'],
      ['etcd-v2-lock doctor --json --ttl 15', 'for programs, and locks with a TTL of 15 s'],
    ],
  });
}

async function doctor(connection: EtcdClientOptions, { json, ttl }: Flags): Promise<number> {
  if (ttl !== undefined) checked(() => checkSeconds('--ttl', ttl));
  const facts = await examine(connection, ttl);
  const findings = judge(facts);
  const ok = isWell(findings);
  if (json) printJson({ ok, basis: basisOf(facts), endpoints: facts.endpoints, findings });
  else for (const line of report(findings)) print(line);
  return ok ? ExitCode.ok : ExitCode.no;
}

async function examine(options: EtcdClientOptions, ttl: number | undefined): Promise<Facts> {
  const settings = checked(() => checkOptions({ ...options, readTimeout: READ_TIMEOUT }));
  const urls = settings.endpoints ?? (await lookUp(settings));
  const given = [options.endpoints ?? urls].flat().map((url) => new URL(url).origin);
  const endpoints = await Promise.all(urls.map((url) => probe(url, settings)));
  return { lockPrefix: settings.lockPrefix, user: options.username, ttl, given, endpoints };
}

const lookUp = ({ srvDomain = '', tls }: ClientSettings): Promise<readonly string[]> =>
  discover(srvDomain, Object.keys(tls).length > 0 ? 'https' : 'http', resolveSrv);
