import { EtcdLeaderElectionInProgress } from '../../errors.ts';
import type { WireAnswer, WireRequest } from '../../http/message.ts';
import { decodeError, unusable } from './errors.ts';
import { etcdJson, isRecord, parseObject } from './json.ts';

/** Paths that return facts about a member and its cluster. */
export type InfoPath =
  | '/version'
  | '/health'
  | '/machines'
  | '/members'
  | '/members/leader'
  | '/stats/self'
  | '/auth/enable';

const UNVERSIONED: readonly InfoPath[] = ['/version', '/health'];

/** Encodes a request for one of these paths. */
export function encodeInfo(path: InfoPath): WireRequest {
  return { method: 'GET', path, query: '', unversioned: UNVERSIONED.includes(path) };
}

/** Versions that a member reports. `cluster` is the lowest version of all members; undefined before they have agreed on it. */
export interface Version {
  readonly server: string;
  readonly cluster: string | undefined;
}

/** Characters of a plain-text answer in which to search for the version. */
const MAX_VERSION_TEXT = 100;

export function decodeVersion(answer: WireAnswer): Version {
  if (answer.status !== 200) throw decodeError(answer);
  const text = /^etcd (\d+(?:\.\d+)+\S*)$/.exec(answer.body.slice(0, MAX_VERSION_TEXT).trim());
  if (text?.[1]) return { server: text[1], cluster: undefined };
  const { etcdserver, etcdcluster } = parseObject(answer.body) ?? {};
  if (typeof etcdserver !== 'string') throw unusable(answer, 'contains no version');
  return {
    server: etcdserver,
    cluster: typeof etcdcluster === 'string' && /^\d/.test(etcdcluster) ? etcdcluster : undefined,
  };
}

/** @param storage version of the storage, which etcd has from 3.6 on */
export const encodeVersion = ({ server, cluster }: Version, storage?: string): string =>
  etcdJson({ etcdserver: server, etcdcluster: cluster ?? 'not_decided', storage }).trimEnd();

/**
 * Whether a cluster of this version supports `refresh`; undefined if the cluster has not decided on its version yet. Before 2.3, etcd
 * ignores the option, and the request erases the value.
 */
export function supportsRefresh({ cluster }: Version): boolean | undefined {
  if (cluster === undefined) return undefined;
  const [major = 0, minor = 0] = cluster.split('.').map(Number);
  return major > 2 || (major === 2 && minor >= 3);
}

export interface MemberInfo {
  readonly id: string;
  readonly name: string;
  readonly peerURLs: readonly string[];
  readonly clientURLs: readonly string[];
}

export function decodeMembers(answer: WireAnswer): MemberInfo[] {
  const body = parseObject(answer.body);
  if (answer.status !== 200 || body?.['errorCode'] !== undefined) throw decodeError(answer, body);
  const members = body?.['members'];
  if (!Array.isArray(members)) throw unusable(answer, body ? 'lists no members' : 'is not JSON');
  return members.map((member: unknown) => {
    const { id, name, peerURLs, clientURLs } = isRecord(member) ? member : {};
    const [peers, clients] = [texts(peerURLs), texts(clientURLs)];
    if (typeof id === 'string' && typeof name === 'string' && peers && clients)
      return { id, name, peerURLs: peers, clientURLs: clients };
    throw unusable(answer, 'lists a member with missing or invalid fields');
  });
}

export const encodeMembers = (members: readonly MemberInfo[]): string => etcdJson({ members });

/** Status of a member that knows no leader. */
const NO_LEADER = 503;

/**
 * Checks an answer to `/members/leader`. Unlike `/health`, it costs no write of raft.
 * @throws the error of a member that knows no leader, or has no v2 API
 */
export function checkLeader(answer: WireAnswer): void {
  if (answer.status === NO_LEADER)
    throw new EtcdLeaderElectionInProgress('the member knows no leader', { httpStatus: answer.status });
  const body = parseObject(answer.body);
  if (answer.status !== 200 || body?.['errorCode'] !== undefined) throw decodeError(answer, body);
  if (typeof body?.['id'] !== 'string') throw unusable(answer, 'names no leader');
}

/** Returns a list of strings, empty if absent; undefined for anything else. */
function texts(list: unknown): string[] | undefined {
  const all: unknown[] | undefined = Array.isArray(list) ? list : (list ?? undefined) === undefined ? [] : undefined;
  return all?.every((text) => typeof text === 'string') ? all : undefined;
}

export function decodeMachines(answer: WireAnswer): string[] {
  if (answer.status !== 200) throw decodeError(answer);
  const machines = answer.body.split(',').map((url) => url.trim());
  if (!machines.every((url) => /^https?:\/\//.test(url))) throw unusable(answer, 'lists no machines');
  return machines;
}

export const encodeMachines = (members: readonly MemberInfo[]): string =>
  members.flatMap(({ clientURLs }) => clientURLs).join(', ');
