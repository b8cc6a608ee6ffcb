import { setTimeout as sleep } from 'node:timers/promises';
import { now } from '../support/stalls/stalls.mjs';
import type { QueueEvent } from './history.ts';

export interface QueueLog {
  /** Every change of every queue so far, in etcd's order. */
  events(): QueueEvent[];
  stop(): Promise<void>;
}

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

/** Watches the queues on each member, past the proxies. The time of a change is when the first member reported it. */
export async function watchQueues(urls: readonly string[]): Promise<QueueLog> {
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
          signal,
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
  return { at, index: node.modifiedIndex, lock, token: BigInt(token), action: kind, value };
}

const kinds: Readonly<Record<string, QueueEvent['action']>> = {
  create: 'queued',
  delete: 'removed',
  compareAndDelete: 'removed',
  expire: 'expired',
};
