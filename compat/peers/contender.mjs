// Contends for a lock by this package's LockManager: see README.md for the commands it reads.
import { appendFileSync, mkdirSync, readFileSync, rmdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { EtcdClient, LockManager } from 'etcd-v2-lock';

const [endpoint, name, ttl] = process.argv.slice(2);
// The other programs get the whole key.
const [, lockPrefix, lock] = /^(\/[^/]+)\/(.+)$/.exec(name);
const client = new EtcdClient({ endpoints: endpoint, api: 'v3', lockPrefix });
const locks = new LockManager(client, { ttl: Number(ttl) });
let held;

for await (const line of createInterface({ input: process.stdin })) {
  const [command, times, directory] = line.split(' ');
  if (command === 'hold') await hold();
  if (command === 'release') {
    await held.release();
    say('released');
  }
  if (command === 'cycle') {
    for (let cycle = 0; cycle < Number(times); cycle += 1) {
      await hold();
      count(directory, held.fencingToken);
      await held.release();
    }
    say('cycled');
  }
}
await client.close();

async function hold() {
  held = await locks.acquire(lock);
  say(`held ${held.fencingToken}`);
}

/** Adds 1 to the counter, reading and then writing it, while nobody else is inside. */
function count(directory, token) {
  const [inside, counter] = [join(directory, 'inside'), join(directory, 'counter')];
  mkdirSync(inside);
  const seen = Number(readFileSync(counter, 'utf8'));
  writeFileSync(counter, String(seen + 1));
  appendFileSync(join(directory, 'history'), `Node ${token}\n`);
  rmdirSync(inside);
}

function say(line) {
  process.stdout.write(`${line}\n`);
}
