import { setTimeout as sleep } from 'node:timers/promises';
import { onTestFinished } from 'vitest';
import { startPython } from '../../../compat/python.ts';
import { sequenceOf } from '../../../src/v2/paths.ts';
import { queueOn, raw } from '../../support/locks.ts';
import { now } from '../../support/stalls/stalls.mjs';
import type { QueueEvent } from '../history.ts';
import type { QueueLog } from '../queue-log.ts';
import type { Request } from '../tcp-proxy.ts';
import { untilRenewed } from './renewed.ts';
import { statusOf } from './status.ts';
import type { Purpose, TestedStore } from './store.ts';

export const V2: TestedStore = {
  api: 'v2',
  foreign: 'python-etcd',
  steadyElection: 10_000,
  electionsRenew: false,
  shortestTtl: 1,
  // Another append would be another entry: the client looks for its own first.
  appendsAfterLoss: 1,
  prepare: async () => {},

  async takeForeign(lock, [member], ttl) {
    // It asks the first member for the others.
    if (member === undefined) throw new Error('python-etcd needs a member to connect to');
    const python = await startPython(member.url, { allowReconnect: true });
    onTestFinished(() => python.stop());
    const own = await python.lock(lock);
    await own.acquire({ lockTtl: ttl });
    const { lockKey } = await own.state();
    const key = lockKey ?? '';
    return { key, token: sequenceOf(key) ?? 0n, release: () => own.release() };
  },

  queue: queueOn,

  purposeOf({ method, path }) {
    if (!path.startsWith('/v2/keys/_locks/')) return undefined;
    if (path.includes('wait=true')) return 'poll';
    return method === 'GET' && !path.includes('recursive=true') ? undefined : PURPOSES[method];
  },

  isAbout: ({ path }, lock) => path.includes(`/_locks/${lock}`),

  async renewalOf(lock) {
    return (request) => V2.purposeOf(request) === 'renewal' && V2.isAbout(request, lock);
  },

  async untilRenewed(lock, members, url) {
    const [first] = await queueOn(lock, await url());
    const renews = ({ method, path, answer = '' }: Request) =>
      method === 'PUT' && path.endsWith(first?.key ?? '') && answer.startsWith('HTTP/1.1 200');
    await untilRenewed(members, renews, async () => (await queueOn(lock, await url()))[0]?.key !== first?.key);
  },

  async write(url) {
    // After a timeout of etcd the write may or may not have happened.
    const { status } = await raw('PUT', '/elsewhere', { value: '1' }, url);
    return status === 200 || status === 201;
  },

  async readByQuorum(url, signal) {
    // The key never exists: only etcd itself answers with 404.
    return (await statusOf(`${url}/v2/keys/_pulse?quorum=true`, { signal })) === 404;
  },

  watchQueues,
  leases: async () => [],
};

const PURPOSES: Readonly<Record<Request['method'], Purpose>> = {
  GET: 'listing',
  POST: 'append',
  PUT: 'renewal',
  DELETE: 'removal',
};

interface WatchAnswer {
  readonly action?: string;
  readonly node?: KeyState;
  readonly prevNode?: KeyState;
  readonly errorCode?: number;
  readonly index?: number;
}

interface KeyState {
  readonly key: string;
  readonly value?: string;
  readonly modifiedIndex: number;
}

const CLEARED = 401;
/** Milliseconds before a failed request to a member is retried. */
const AGAIN = 100;

async function watchQueues(urls: readonly string[]): Promise<QueueLog> {
  const events = new Map<number, QueueEvent>();
  const stopped = new AbortController();
  const { signal } = stopped;
  const begin = await fetch(`${urls[0]}/v2/keys/?quorum=true`);
  await begin.arrayBuffer();
  const first = Number(begin.headers.get('x-etcd-index')) + 1;

  async function follow(url: string): Promise<void> {
    let waitIndex = first;
    while (!signal.aborted) {
      try {
        const response = await fetch(`${url}/v2/keys/_locks?wait=true&recursive=true&waitIndex=${waitIndex}`, {
          // A signal of its own, because `fetch` keeps its listeners until they are garbage.
          signal: AbortSignal.any([signal]),
        });
        const answer = (await response.json()) as WatchAnswer;
        const at = now();
        if (answer.errorCode === CLEARED) waitIndex = (answer.index ?? waitIndex) + 1;
        if (answer.node === undefined) continue;
        waitIndex = answer.node.modifiedIndex + 1;
        const event = read(answer, at);
        if (event && !events.has(event.index)) events.set(event.index, event);
      } catch {
        await sleep(AGAIN, undefined, { signal }).catch(() => {});
      }
    }
  }

  const following = urls.map(follow);
  return {
    events: () => [...events.values()].sort((a, b) => a.index - b.index),
    async stop() {
      stopped.abort();
      await Promise.all(following);
    },
  };
}

/** Returns undefined if no entry was appended or removed, such as for a renewal. */
function read({ action, node, prevNode }: WatchAnswer, at: number): QueueEvent | undefined {
  const [, lock, token] = /^\/_locks\/([^/]+)\/(\d+)$/.exec(node?.key ?? '') ?? [];
  const kind = kinds[action ?? ''];
  if (node === undefined || lock === undefined || token === undefined || kind === undefined) return undefined;
  const value = node.value ?? prevNode?.value ?? '';
  return { at, index: node.modifiedIndex, lock, rank: BigInt(token), action: kind, value };
}

const kinds: Readonly<Record<string, QueueEvent['action']>> = {
  create: 'queued',
  delete: 'removed',
  compareAndDelete: 'removed',
  expire: 'expired',
};
