// One of several instances leads, and each of them knows who. Start it in several terminals, with different URLs:
//   node election.mjs http://127.0.0.1:8001
import { setTimeout as sleep } from 'node:timers/promises';
import { EtcdClient, LockManager } from 'etcd-v2-lock';

const client = new EtcdClient({ endpoints: process.env.ETCD_ENDPOINTS?.split(',') ?? 'http://127.0.0.1:2379' });
const locks = new LockManager(client, { ttl: 15 });
const election = locks.elect('examples/election', { value: process.argv[2] ?? 'http://127.0.0.1:8000' });

const stop = new AbortController();
for (const name of ['SIGTERM', 'SIGINT']) process.once(name, () => stop.abort(new Error(name)));
/** Waits for the end of a loop that the signal ends. */
const untilStopped = (loop) =>
  loop.catch((error) => {
    if (error !== stop.signal.reason) throw error;
  });

async function observe() {
  for await (const leader of election.observe({ signal: stop.signal }))
    console.log(leader ? `${leader.value ?? leader.label} leads` : 'nobody leads');
}

async function campaign() {
  for await (const term of election.campaign({ signal: stop.signal })) {
    console.log('leading');
    // Ends with the term, before anyone else can lead. Then the loop campaigns again.
    const signal = AbortSignal.any([stop.signal, term.signal]);
    while (!signal.aborted) await sleep(60_000, undefined, { signal }).catch(() => {});
  }
}

try {
  await Promise.all([observe(), campaign()].map(untilStopped));
} finally {
  await client.close().catch((error) => console.error(error.message)); // in an outage, keys may be left
}
console.log('stopped');
