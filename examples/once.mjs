// A job that runs once per tick, on whichever host begins the tick first. Start it on several hosts, or in several terminals.
import { EtcdClient, LockManager } from 'etcd-v2-lock';

const client = new EtcdClient({ endpoints: process.env.ETCD_ENDPOINTS?.split(',') ?? 'http://127.0.0.1:2379' });
const locks = new LockManager(client);

async function writeReport({ fencingToken, signal }, { at, missed, previous }) {
  signal.throwIfAborted(); // pass it to `fetch`, timers, your database …: it aborts as soon as the lock is lost
  if (missed) console.log(`${missed} reports were missed`);
  if (previous?.state === 'begun')
    console.log(`${previous.by} did not end the report for ${previous.at.toISOString()}`);
  console.log(`report for ${at.toISOString()}, written with token ${fencingToken}`);
}

/** Called with the outcome of each tick on this host. */
function report({ outcome, at, recorded, error }) {
  if (outcome === 'taken') console.log(`${recorded.by} has begun the report for ${recorded.at.toISOString()}`);
  if (error) console.log(`the report for ${at.toISOString()} ${outcome}: ${error}`);
}

// Every second, to see something. Other schedules: '15m', '1h', '1d', or a cron expression such as '0 3 * * 1-5'.
const job = locks.once('examples/once', { every: '1s', report }, writeReport);
for (const name of ['SIGTERM', 'SIGINT']) process.once(name, () => job.stop());
await job.stopped;
await client.close().catch((error) => console.error(error.message)); // in an outage, keys may be left
console.log('stopped');
