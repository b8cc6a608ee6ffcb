import { randomUUID } from 'node:crypto';
import { queueOfOurs } from '../contestants/queues.mjs';
import { startProxy } from '../setting/proxy.mjs';
import { waitersAt } from '../setting/waiters.mjs';
import { among } from './rounds.mjs';

const WAITERS = 10;
/** Number of keys that one transaction of etcd writes at most, by default. */
const KEYS_A_WRITE = 128;

/**
 * Counts requests and bytes of ten hand-overs at the head of a queue on etcd's v3 API, by the number of entries in it. The other
 * entries are bare keys: nobody waits for them, so the counts do not depend on the speed of the machine.
 */
export async function countLongQueue(etcd, lengths) {
  const proxy = await startProxy(etcd.url);
  try {
    const counted = {};
    for (const length of lengths)
      await among([queueOfOurs('manager', proxy.url, 'v3')], async ([queue]) => {
        const name = `long-${randomUUID()}`;
        await queue.hold(name);
        const waiting = await waitersAt.v3(etcd.url);
        for (let i = 0; i < WAITERS; i += 1) await queue.queue();
        await waiting(WAITERS);
        await fill(etcd.url, `/_locks/${name}/`, length - WAITERS - 1);
        await proxy.take();
        await queue.drain();
        const { kinds, bytes } = await proxy.take();
        counted[length] = { kinds, bytesPerHandOver: bytes / WAITERS };
      });
    return counted;
  } finally {
    await proxy.stop();
  }
}

async function fill(url, prefix, count) {
  for (let written = 0; written < count; written += KEYS_A_WRITE) {
    const keys = Array.from({ length: Math.min(KEYS_A_WRITE, count - written) }, () => prefix + randomUUID());
    const success = keys.map((key) => ({ request_put: { key: Buffer.from(key).toString('base64') } }));
    const answer = await fetch(`${url}/v3/kv/txn`, { method: 'POST', body: JSON.stringify({ success }) });
    if (!answer.ok) throw new Error(`keys not written: ${await answer.text()}`);
    await answer.text();
  }
}
