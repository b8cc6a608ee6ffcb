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
/** Milliseconds until a member that does not answer is asked again. */
const AGAIN = 100;

/** Follows the queues on each member, past every proxy. A change counts from the moment the first of them told of it. */
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
        const answer = await fetch(`${url}/v2/keys/_locks?wait=true&recursive=true&waitIndex=${waitIndex}`, { signal });
        const told = (await answer.json()) as WatchAnswer;
        const at = now();
        if (told.errorCode === CLEARED) waitIndex = (told.index ?? waitIndex) + 1;
        if (told.node === undefined) continue;
        waitIndex = told.node.modifiedIndex + 1;
        const event = read(told, at);
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

/** Nothing, where an entry was only renewed. */
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
