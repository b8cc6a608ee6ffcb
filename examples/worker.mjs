// Workers that take jobs from a queue, as those of BullMQ do. A job that changes two accounts holds the locks of both, so that no other
// job changes one of them at the same time, in any process. Jobs that name the accounts in another order cannot deadlock.
import { setTimeout as sleep } from 'node:timers/promises';
import { EtcdClient, LockManager } from 'etcd-v2-lock';

const client = new EtcdClient({ endpoints: process.env.ETCD_ENDPOINTS?.split(',') ?? 'http://127.0.0.1:2379' });
const locks = new LockManager(client);
const balances = { ada: 100, bob: 100, eve: 100 };
const jobs = [
  { from: 'ada', to: 'bob', amount: 10 },
  { from: 'bob', to: 'ada', amount: 20 },
  { from: 'eve', to: 'ada', amount: 30 },
  { from: 'bob', to: 'eve', amount: 40 },
];

async function transfer({ from, to, amount }) {
  await locks.request([`examples/${from}`, `examples/${to}`], async (held) => {
    const [left, right] = [balances[from], balances[to]];
    await sleep(50);
    held.assertHeld();
    balances[from] = left - amount;
    balances[to] = right + amount;
    console.log(`${amount} from ${from} to ${to}`);
  });
}

async function worker() {
  for (let job = jobs.shift(); job; job = jobs.shift()) await transfer(job);
}

await Promise.all([worker(), worker(), worker()]);
console.log(JSON.stringify(balances));
await client.close();
