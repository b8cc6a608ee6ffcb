// Times for your metrics, from the channels of `node:diagnostics_channel`.
import { subscribe } from 'node:diagnostics_channel';
import { setTimeout as sleep } from 'node:timers/promises';
import { EtcdClient, LockManager } from 'etcd-v2-lock';

const on = (event, listener) => subscribe(`tracing:etcd-v2-lock:request:${event}`, listener);

// All times are in seconds.
on('wait', ({ name, mode }) => console.log(`wait: ${name}, ${mode}`));
on('held', ({ name, waited, fencingToken }) => console.log(`held: ${name} after ${waited} s, token ${fencingToken}`));
on('lost', ({ name, held, lost }) => console.log(`lost: ${name} after ${held} s, ${lost.code}`));
on('released', ({ name, held, cleanupError }) => console.log(`released: ${name} after ${held} s, ${cleanupError}`));
// The error the request rejected with: a loss, a timeout, or an error of the callback.
on('error', ({ name, error }) => console.log(`error: ${name}, ${error.code}`));

const endpoints = process.env.ETCD_ENDPOINTS?.split(',') ?? ['http://127.0.0.1:2379'];
const client = new EtcdClient({ endpoints });
const locks = new LockManager(client, { ttl: 3 });

await locks.request('examples/metrics', async () => {});

// Somebody removes the key of a held lock: the next renewal detects the loss.
const work = locks.request('examples/metrics', async (held) => {
  await fetch(`${endpoints[0]}/v2/keys${held.key}`, { method: 'DELETE' });
  await sleep(60_000, undefined, { signal: held.signal });
});
await work.catch(({ lockError }) => console.log(lockError.message));
await client.close();
