import { setTimeout as sleep } from 'node:timers/promises';
import { onTestFinished } from 'vitest';
import { LockManager } from '../../../src/index.ts';
import { lockByEtcdctl } from '../../support/etcdctl.mjs';
import { base64, entriesBelow, gateway } from '../../support/gateway.ts';
import { freshName } from '../../support/locks.ts';
import { now } from '../../support/stalls/stalls.mjs';
import type { QueueEvent } from '../history.ts';
import { valueOfGo } from '../line.ts';
import type { QueueLog } from '../queue-log.ts';
import { untilRenewed } from './renewed.ts';
import { statusOf } from './status.ts';
import type { TestedStore } from './store.ts';
import { confirms, keysOf, purposeOf } from './v3-requests.ts';

const PREFIX = '/_locks/';

export const V3: TestedStore = {
  api: 'v3',
  foreign: 'etcdctl lock',
  steadyElection: 4000,
  electionsRenew: true,
  shortestTtl: 6,
  // The append creates the entry unless it exists, so it is sent again.
  appendsAfterLoss: 2,

  async prepare(client, ttl) {
    await new LockManager(client, { ttl }).request(freshName(), () => {});
  },

  async takeForeign(lock, by, ttl) {
    const etcdctl = lockByEtcdctl(PREFIX + lock, { endpoints: by.map(({ url }) => url), ttl });
    onTestFinished(() => etcdctl.kill());
    const { key, token } = await etcdctl.held;
    const release = async () => {
      await etcdctl.release();
      await endLease(
        key,
        by.map(({ etcd }) => etcd.url),
      );
    };
    return { key, token, release };
  },

  queue: (lock, url) => entriesBelow(`${PREFIX}${lock}/`, url),

  purposeOf,

  isAbout: (request, lock) => keysOf(request).some((key) => key.startsWith(`${PREFIX}${lock}/`)),

  async renewalOf(lock, url) {
    const range = { key: base64(`${PREFIX}${lock}/`), range_end: base64(`${PREFIX}${lock}0`) };
    const { kvs: [first] = [] } = await gateway('/kv/range', range, url);
    return (request) => purposeOf(request) === 'renewal' && request.body.includes(`"${first?.lease}"`);
  },

  async untilRenewed(lock, members, url) {
    const [first] = await entriesBelow(`${PREFIX}${lock}/`, await url());
    const isReplaced = async () => (await V3.queue(lock, await url()))[0]?.key !== first?.key;
    await untilRenewed(members, (request) => confirms(request, first?.key ?? ''), isReplaced);
  },

  async write(url) {
    const answer = await gateway('/kv/put', { key: base64('elsewhere'), value: base64('1') }, url);
    return answer['error'] === undefined;
  },

  async readByQuorum(url, signal) {
    const body = JSON.stringify({ key: base64('pulse') });
    return (await statusOf(`${url}/v3/kv/range`, { method: 'POST', body, signal })) === 200;
  },

  watchQueues,

  async leases(url) {
    const { leases = [], ...answer } = await gateway('/lease/leases', {}, url);
    if ('error' in answer || 'code' in answer) throw new Error(`leases not read: ${JSON.stringify(answer)}`);
    return leases.map(({ ID }) => ID);
  },
};

/** Ends the lease of an `etcdctl lock`, whose id is the name of its key, by one of these members. */
async function endLease(key: string, urls: readonly string[]): Promise<void> {
  const id = String(BigInt(`0x${key.slice(key.lastIndexOf('/') + 1)}`));
  const signal = AbortSignal.timeout(5000);
  const ask = async (url: string): Promise<void> => {
    const body = JSON.stringify({ ID: id });
    const status = await statusOf(`${url}/v3/lease/revoke`, { method: 'POST', body, signal });
    if (status !== 200 && status !== 404) throw new Error(`lease not ended by ${url}: ${status}`);
  };
  await Promise.any(urls.map(ask));
}

interface KeyState {
  readonly key: string;
  readonly value?: string;
  readonly create_revision?: string;
  readonly mod_revision: string;
  readonly lease?: string;
}

interface WatchMessage {
  readonly result?: {
    readonly events?: readonly { readonly type?: string; readonly kv: KeyState; readonly prev_kv?: KeyState }[];
  };
}

/** Milliseconds before a failed request to a member is retried. */
const AGAIN = 100;

async function watchQueues(urls: readonly string[]): Promise<QueueLog> {
  const events = new Map<string, QueueEvent>();
  const stopped = new AbortController();
  const { signal } = stopped;
  const { header } = (await gateway('/kv/range', { key: base64(PREFIX) }, urls[0])) as unknown as {
    header: { revision: string };
  };

  async function follow(url: string): Promise<void> {
    let from = BigInt(header.revision) + 1n;
    while (!signal.aborted) {
      try {
        const range = { key: base64(PREFIX), range_end: base64('/_locks0') };
        const message = { create_request: { ...range, start_revision: String(from), prev_kv: true } };
        const response = await fetch(`${url}/v3/watch`, { method: 'POST', body: JSON.stringify(message), signal });
        let text = '';
        for await (const chunk of response.body?.pipeThrough(new TextDecoderStream()) ?? []) {
          const at = now();
          const lines = (text + chunk).split('\n');
          text = lines.pop() ?? '';
          for (const line of lines)
            for (const change of (JSON.parse(line) as WatchMessage).result?.events ?? []) {
              from = BigInt(change.kv.mod_revision) + 1n;
              const event = read(change, at);
              const id = `${event?.index} ${event?.rank}`;
              if (event && !events.has(id)) events.set(id, event);
            }
        }
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

/** Returns undefined if an entry was only written again. */
function read(
  { type, kv, prev_kv: before }: { readonly type?: string; readonly kv: KeyState; readonly prev_kv?: KeyState },
  at: number,
): QueueEvent | undefined {
  const isRemoval = type === 'DELETE';
  const state = isRemoval ? before : kv;
  const key = Buffer.from(kv.key, 'base64').toString();
  const [, lock, name = ''] = /^\/_locks\/([^/]+)\/([^/]+)$/.exec(key) ?? [];
  if (state === undefined || lock === undefined) return undefined;
  if (!isRemoval && kv.create_revision !== kv.mod_revision) return undefined;
  return {
    at,
    index: Number(kv.mod_revision),
    lock,
    key,
    rank: BigInt(state.create_revision ?? 0),
    // A removal and an expiry look alike.
    action: isRemoval ? 'gone' : 'queued',
    value: Buffer.from(state.value ?? '', 'base64').toString() || valueOfGo(name),
    lease: state.lease,
  };
}
