/** Measures a cluster for the findings of `doctor`. */
import { resolveSrv } from 'node:dns/promises';
import type { StoreApi } from '../../client.ts';
import { originsOf } from '../../http/checks/endpoints.ts';
import { discover } from '../../http/failover/srv.ts';
import type { Surveyor } from '../../recipe/survey.ts';
import type { StoreOptions } from '../connection.ts';
import { type Access, withoutCredentials } from './access.ts';
import type { EndpointFacts, Facts, Finding } from './facts.ts';
import { judgeMove, tooLate } from './moving/judge.ts';
import type { Kinds } from './moving/kinds.ts';
import { watchStores } from './moving/watch.ts';
import { probe as probeV2, readMember } from './v2/probe.ts';
import { readAdvertised, readServers } from './v3/advertised.ts';
import { probe as probeV3 } from './v3/probe.ts';
import { refusesV2 } from './version.ts';

export interface Examination {
  /** The TTL of the locks, in seconds; undefined: the shortest that is seen. */
  readonly ttl?: number | undefined;
  /** Whether a test key is created on each member of etcd v2, and removed. Nothing else is written. */
  readonly testKeys: boolean;
}

/**
 * Measures each member, and what concerns all of them.
 * @param access the one by these options
 * @throws the error of a DNS lookup
 */
export async function examine(options: StoreOptions, access: Access, { ttl, testKeys }: Examination): Promise<Facts> {
  const { api = 'v2' } = options;
  const { settings } = access;
  const urls = await urlsBy(access);
  const given = settings.endpoints ? originsOf(options) : urls;
  const common = { api, lockPrefix: settings.lockPrefix, user: options.username, ttl, given };
  if (api === 'v2') {
    const infos = await Promise.all(urls.map((url) => readMember(url, access)));
    const { upgraded } = await survey(infos, access);
    const trial = upgraded.length > 0 ? 'none' : testKeys ? 'with test key' : 'without test key';
    const endpoints = await Promise.all(infos.map((info) => probeV2(info, access, trial)));
    return { ...common, endpoints, upgraded };
  }
  const endpoints = await Promise.all(urls.map((url) => probeV3(url, access)));
  return { ...common, endpoints, ...(await survey(endpoints, access)) };
}

/** What a watch of both stores has shown of a move from v2 to v3. */
export interface MoveFacts {
  /** undefined: v2 was not read, because members run etcd 3.6 already. */
  readonly kinds: Kinds | undefined;
  readonly findings: readonly Finding[];
}

/** Watches both stores for some seconds, unless members run etcd 3.6: they would panic at the reads of v2, which are by quorum. */
export async function examineMove(access: Access, stores: Readonly<Record<StoreApi, Surveyor>>): Promise<MoveFacts> {
  const servers = await readServers(await urlsBy(access), withoutCredentials(access).settings);
  const upgraded = servers.filter(({ version }) => refusesV2(version)).map(({ url }) => url);
  if (upgraded.length > 0) return { kinds: undefined, findings: [tooLate(upgraded)] };
  const kinds = await watchStores(stores.v2, stores.v3);
  return { kinds, findings: judgeMove(kinds) };
}

/** Asks the members that are not among the endpoints, too. Returns what concerns all members. */
async function survey(
  endpoints: readonly EndpointFacts[],
  access: Access,
): Promise<{ upgraded: string[]; withoutGateway: string[] }> {
  const asked = endpoints.map(({ endpoint, version, members = [] }) => ({ url: endpoint, version, members }));
  const advertised = await readAdvertised(asked, withoutCredentials(access).settings);
  return {
    upgraded: [...asked, ...advertised].filter(({ version }) => refusesV2(version)).map(({ url }) => url),
    withoutGateway: advertised.filter(({ lacksGateway }) => lacksGateway).map(({ url }) => url),
  };
}

const urlsBy = async ({ settings }: Access): Promise<readonly string[]> =>
  settings.endpoints ?? (await discover(settings, resolveSrv));
