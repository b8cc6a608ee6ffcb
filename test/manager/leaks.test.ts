import { expect, inject, test } from 'vitest';
import { freshName } from '../support/locks.ts';
import { runScript } from '../support/script.ts';

const REQUESTS = 10_000;
const CHAINED = 300;
/** Bytes that the heap may grow by: a uuid of each request left behind in a set would be 800 kB. */
const HEAP = 500_000;

const OUTCOMES = ['aborted', 'alone', 'available', 'in time', 'nested', 'released', 'shared', 'taken', 'thrown'];

/** Each request starts the next one from inside its callback. */
const CHAIN = `
  import v8 from 'node:v8';
  import { EtcdClient, LockManager } from 'etcd-v2-lock';
  import { Hold } from './dist/manager/hold.js';

  const client = new EtcdClient({ endpoints: process.env.ETCD });
  const locks = new LockManager(client, { ttl: 60 });
  const holds = await new Promise((resolve, reject) => {
    const next = (left) => locks.request(process.env.NAME, () => {
      if (left > 0) setImmediate(next, left - 1);
      else resolve(v8.queryObjects(Hold, { format: 'count' }));
    }).catch(reject);
    next(${CHAINED});
  });
  await client.close();
  console.log(JSON.stringify({ holds }));
`;

/** Lets requests of all kinds and all outcomes run, and tells before and after what is there. */
const SCRIPT = `
  import { getEventListeners, setMaxListeners } from 'node:events';
  import v8 from 'node:v8';
  import { EtcdClient, LockManager } from 'etcd-v2-lock';
  import { Attempt } from './dist/recipe/attempt.js';
  import { V2Ticket } from './dist/v2/locks/ticket.js';
  import { Hold } from './dist/manager/hold.js';
  import { Lease } from './dist/recipe/lease.js';
  import { LocalQueue } from './dist/manager/local-queue.js';
  import { Trace } from './dist/manager/trace.js';

  const client = new EtcdClient({ endpoints: process.env.ETCD, lockPrefix: '/' + process.env.NAME });
  const locks = new LockManager(client, { ttl: 60 });
  const { signal } = new AbortController();
  setMaxListeners(0, signal);
  const outcomes = {};
  const count = (outcome) => { outcomes[outcome] = (outcomes[outcome] ?? 0) + 1; };

  const kinds = [
    (name) => locks.request(name, { signal }, () => 'alone'),
    (name) => locks.request(name, { signal, mode: 'shared' }, () => 'shared'),
    (name, lane) => locks.request(lane % 2 ? name : 'own-' + lane, { signal, ifAvailable: true }, (held) => held ? 'available' : 'taken'),
    (name) => locks.request(name, { signal, identity: 'node-1' }, () => { throw 'thrown'; }),
    (name) => {
      const abort = new AbortController();
      const request = locks.request(name, { signal: abort.signal }, () => 'too late to abort');
      setImmediate(() => abort.abort('aborted'));
      return request;
    },
    (name) => locks.request(name, { signal, reentrant: true }, () =>
      locks.request(name, { signal, reentrant: true }, () => 'nested')),
    async (name) => {
      const held = await locks.acquire(name, { signal });
      return (await held.release()) ? 'released' : 'lost';
    },
    (name) => locks.request(name, { signal, timeout: 30 }, () => 'in time'),
  ];

  /** 40 names, each wanted by several at a time. */
  async function run(requests) {
    let next = 0;
    await Promise.all(Array.from({ length: 200 }, async (_, lane) => {
      while (next < requests) {
        const kind = kinds[next % kinds.length];
        next += 1;
        await kind('lock-' + (lane % 40), lane).then(count, (error) => count(error));
      }
    }));
  }

  const classes = { Attempt, V2Ticket, Hold, Lease, LocalQueue, Trace };
  const listeners = (of) => getEventListeners(of, 'abort').length;
  const resources = (type) => process.getActiveResourcesInfo().filter((resource) => resource.startsWith(type)).length;
  async function look() {
    const { held, pending } = await locks.query();
    // This collects all garbage first.
    const objects = Object.entries(classes).map(([name, Class]) => [name, v8.queryObjects(Class, { format: 'count' })]);
    return {
      left: {
        keys: held.length + pending.length,
        timers: resources('Timeout'),
        listeners: client.cleanups.closing.listenerCount + listeners(signal),
      },
      objects: Object.fromEntries(objects),
      sockets: resources('TCP'),
      heap: process.memoryUsage().heapUsed,
    };
  }

  // So that what is made only once, and compiled by then, is there already.
  await run(3000);
  const before = await look();
  const during = await locks.request('one', { signal }, look);
  for (const outcome of Object.keys(outcomes)) delete outcomes[outcome];
  await run(${REQUESTS});
  // What is left of the last ones, such as idle connections, is released soon; a leak never.
  const leaks = ({ heap, left }) => heap - before.heap > ${HEAP} || Object.values(left).some((count) => count > 0);
  let after = await look();
  for (let i = 0; i < 300 && leaks(after); i += 1) {
    await new Promise((resolve) => setTimeout(resolve, 100));
    after = await look();
  }
  await client.close();
  const handles = process.getActiveResourcesInfo().filter((resource) => !/Pipe|TTY|FS/.test(resource));
  console.log(JSON.stringify({ before, during, after, outcomes, handles }));
`;

/** What the script told. */
async function toldBy(script: string) {
  const env = { ETCD: inject('etcd'), NAME: freshName(), NODE_OPTIONS: '--disable-warning=ExperimentalWarning' };
  const { code, stdout, stderr } = await runScript(script, env);
  expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
  return JSON.parse(stdout);
}

test(`${REQUESTS} requests leave nothing behind`, async () => {
  const { before, during, after, outcomes, handles } = await toldBy(SCRIPT);
  expect(after.left).toEqual({ keys: 0, timers: 0, listeners: 0 });
  // The engine may still have one of the last in hand.
  for (const [name, count] of Object.entries(after.objects)) expect(count, name).toBeLessThan(5);
  // What is there while a lock is held is seen: else the above would prove nothing.
  expect(during.left).toMatchObject({ keys: 1, listeners: 1 });
  for (const name of ['V2Ticket', 'Hold', 'Lease', 'LocalQueue', 'Trace'])
    expect(during.objects[name], name).toBeGreaterThan(0);
  // Idle connections, however many requests there were.
  expect(after.sockets).toBeLessThan(10);
  expect(handles).toEqual([]);
  expect(after.heap - before.heap).toBeLessThanOrEqual(HEAP);
  expect(Object.keys(outcomes).sort()).toEqual(OUTCOMES);
}, 300_000);

test('a request started inside another one keeps nothing of it, however long that goes on', async () => {
  const { holds } = await toldBy(CHAIN);
  expect(holds).toBeGreaterThan(0);
  expect(holds).toBeLessThan(5);
});
