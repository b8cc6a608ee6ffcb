// Three contenders hold one lock in the order of arrival, each for longer than its TTL.
import { randomUUID } from 'node:crypto';
import { EtcdClient, Lock } from 'etcd-v2-lock';
import { EmbeddedEtcd } from 'etcd-v2-lock/server';
import { findPython } from '../find.mjs';
import { startPythonContender } from './python-contender.mjs';
import { openTimeline } from './timeline.mjs';

const TTL = 4;
const HOLD = 5;

const NEXT = `next: start a server with "node dist/cli/main.js serve". In another terminal, run a command under a lock:
      "node dist/cli/main.js run demo -- sleep 5". README.md shows how to use locks in a program.`;

/** An endpoint as the command line takes it, as a URL. */
function urlOf(endpoint) {
  const text = endpoint.trim();
  return text.includes('://') ? text : `http://${text}`;
}

const embedded = process.env.ETCD_ENDPOINTS ? undefined : await EmbeddedEtcd.start();
const endpoints = embedded ? [embedded.url] : process.env.ETCD_ENDPOINTS.split(',').map(urlOf);
const name = `demo-${randomUUID()}`;
const client = await connect();
const queue = new Lock(client, name);
const timeline = openTimeline();
const server = embedded ? `the embedded server (${embedded.url})` : endpoints.join(', ');
console.log(`\nlock ${queue.path} on ${server}; TTL ${TTL} s, each contender holds it for ${HOLD} s\n`);

const python = findPython();
const contenders = [node('node-1'), python ? pythonEtcd('python-etcd') : node('node-2'), node('node-3')];
if (!python) console.log('(python3-etcd is not installed: all three contenders are Node)\n');

const names = [];
const turns = [];
for (const [i, contender] of contenders.entries()) {
  names.push(contender.name);
  timeline.add(contender.name, 'enqueued');
  turns.push(contender.run());
  await queued(i + 1);
}
await Promise.all(turns);

const order = timeline.order('held');
const alone = timeline.neverTwoAtOnce();
console.log();
timeline.printBars();
console.log(
  `\nheld in the order of arrival: ${order.join(', ') === names.join(', ') ? 'yes' : `NO, ${order.join(', ')}`}`,
);
console.log(`never two holders at once: ${alone ? 'yes' : 'NO'}`);
console.log(`\n${NEXT}`);
await client.close();
await embedded?.stop();
process.exitCode = order.join() === names.join() && alone ? 0 : 1;

/** Returns a client of an etcd that answers; otherwise prints why and exits. */
async function connect() {
  try {
    const client = new EtcdClient({ endpoints });
    await new Lock(client, name).contenders();
    return client;
  } catch (error) {
    console.error(`cannot use ${endpoints.join(', ')}: ${error.message}`);
    process.exit(1);
  }
}

function node(contender) {
  const own = new EtcdClient({ endpoints });
  const lock = new Lock(own, name);
  const run = async () => {
    await lock.acquire({ lockTtl: TTL, keepAlive: true, timeout: 60 });
    timeline.add(contender, 'held', `fencing token ${lock.fencingToken}, kept alive`);
    await new Promise((resolve) => setTimeout(resolve, HOLD * 1000));
    timeline.add(contender, 'released', lock.isTaken ? 'still held' : 'LOST');
    await lock.release();
    await own.close();
  };
  return { name: contender, run };
}

function pythonEtcd(contender) {
  const run = () =>
    startPythonContender(python, { url: endpoints[0], lock: name, ttl: TTL, hold: HOLD }, (event) =>
      timeline.add(contender, event, event === 'held' ? 'renews with acquire(), as python-etcd does' : ''),
    );
  return { name: contender, run };
}

/** Waits until `count` contenders have entered the queue, including those that have released the lock. */
async function queued(count) {
  const gone = () => timeline.order('released').length;
  while ((await queue.contenders()).length + gone() < count) await new Promise((resolve) => setTimeout(resolve, 20));
}
