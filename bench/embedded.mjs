// Costs of the embedded server, and whether they grow faster than the work: `npm run build && node bench/embedded.mjs`.
// Each figure is per item; `ratio` is the figure ÷ the figure for half as many items, about 1 if the cost is linear.
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { EmbeddedEtcd } from 'etcd-v2-lock/server';
import { Agent, request } from 'undici';

setFlagsFromString('--expose-gc');
const gc = runInNewContext('gc');

const timers = countTimers();

const print = (text = '') => process.stdout.write(`${text}\n`);

/** Prints a row per size: the figures of `measure(size)`, each with its ratio to the row before. */
async function table(title, sizes, measure) {
  print(title);
  let before;
  // Warm up.
  await measure(sizes[0]);
  for (const size of sizes) {
    const figures = await median(() => measure(size));
    const cells = Object.entries(figures).map(([name, figure]) => {
      const ratio = before ? ` (ratio ${(figure / before[name]).toFixed(2)})` : '';
      return `${name} ${figure.toFixed(figure < 10 ? 2 : 1)}${ratio}`.padEnd(48);
    });
    print(`  N = ${String(size).padStart(6)}   ${cells.join('  ').trimEnd()}`);
    before = figures;
  }
  print();
}

/** Returns the median of three rounds for each figure. */
async function median(round) {
  const rounds = [await round(), await round(), await round()];
  return Object.fromEntries(
    Object.keys(rounds[0]).map((name) => [name, rounds.map((figures) => figures[name]).sort((a, b) => a - b)[1]]),
  );
}

async function heap() {
  for (let i = 0; i < 3; i += 1) {
    gc();
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
  return process.memoryUsage().heapUsed;
}

/** Runs the work with a server and clients for it: up to 64 reused connections, and one further connection per poll. */
async function withEtcd(work) {
  const etcd = await EmbeddedEtcd.start();
  const busy = new Agent({ connections: 64, pipelining: 1 });
  const waiters = new Agent({ headersTimeout: 0, bodyTimeout: 0, connect: { timeout: 0 } });
  const ask = async (method, path, form, dispatcher = busy) => {
    const headers = form === undefined ? {} : { 'content-type': 'application/x-www-form-urlencoded' };
    const answer = await request(etcd.url + path, { method, dispatcher, headers, body: form ?? null });
    return answer.body;
  };
  try {
    return await work({
      write: async (key, form) => (await ask('PUT', `/v2/keys${key}`, form)).dump(),
      read: async (path) => (await ask('GET', `/v2/keys${path}`)).text(),
      poll: (key) => ask('GET', `/v2/keys${key}?wait=true`, undefined, waiters),
    });
  } finally {
    await Promise.all([busy.destroy(), waiters.destroy()]);
    await etcd.stop();
  }
}

const times = (n, fn) => Promise.all(Array.from({ length: n }, (_, i) => fn(i)));

/** Calls `fn` with 0 to n - 1, 64 calls at a time. */
async function inBurst(n, fn) {
  let next = 0;
  await times(64, async () => {
    while (next < n) await fn(next++);
  });
}

async function clocked(work) {
  const start = performance.now();
  await work();
  return performance.now() - start;
}

/** The figures include the clients, which run in this process too. */
const polls = (keyOf, wake) => (n) =>
  withEtcd(async ({ write, poll }) => {
    await write('/warm', 'value=1');
    const empty = await heap();
    let bodies;
    const begin = await clocked(async () => {
      bodies = await times(n, (i) => poll(keyOf(i)));
    });
    const waiting = await heap();
    const woken = await clocked(async () => {
      await Promise.all([...bodies.map((body) => body.dump()), wake(write, n)]);
    });
    bodies = undefined;
    return {
      'begin, µs': (begin * 1000) / n,
      'wake, µs': (woken * 1000) / n,
      'heap, KiB': (waiting - empty) / 1024 / n,
    };
  });

/** Prints how much heap each round leaves behind. */
async function leftOver(n, measure) {
  const heaps = [];
  for (let i = 0; i < 4; i += 1) {
    await measure(n);
    heaps.push(await heap());
  }
  const grown = heaps.slice(1).map((after, i) => ((after - heaps[i]) / 1024).toFixed(0));
  print(`  heap after each of three more rounds of ${n}: ${grown.join(', ')} KiB more\n`);
}

const POLLS = [500, 1000, 2000];
const onOneKey = polls(
  () => '/k',
  (write) => write('/k', 'value=1'),
);
const onDistinctKeys = polls(
  (i) => `/k/${i}`,
  (write, n) => inBurst(n, (i) => write(`/k/${i}`, 'value=1')),
);
await table('long polls on one key, woken by one write', POLLS, onOneKey);
await leftOver(1000, onOneKey);
await table('long polls on distinct keys, woken by a write each', POLLS, onDistinctKeys);
await leftOver(1000, onDistinctKeys);

const writes = (waiters) => (n) =>
  withEtcd(async ({ write, poll }) => {
    await times(waiters, (i) => poll(`/elsewhere/${i}`));
    const took = await clocked(() => inBurst(n, (i) => write(`/k/${i % 100}`, `value=${i}`)));
    return { 'write, µs': (took * 1000) / n };
  });

const WRITES = [5000, 10_000, 20_000];
await table('a burst of writes', WRITES, writes(0));
await table('a burst of writes while 1,000 long polls wait elsewhere', WRITES, writes(1000));

const withTtl = (n) =>
  withEtcd(async ({ write }) => {
    const before = timers();
    const took = await clocked(() => inBurst(n, (i) => write(`/k/${i}`, `value=1&ttl=${60 + (i % 3600)}`)));
    return { 'put, µs': (took * 1000) / n, timers: timers() - before };
  });

await table('keys with a TTL', [5000, 10_000, 20_000], withTtl);

const listing = (n) =>
  withEtcd(async ({ write, read }) => {
    await inBurst(n, (i) => write(`/k/${String((i * 7919) % n).padStart(20, '0')}`, 'value=1'));
    const took = await clocked(async () => {
      for (let i = 0; i < 10; i += 1) await read('/k?recursive=true&sorted=true');
    });
    return { 'list, µs per key': (took * 1000) / 10 / n };
  });

await table('a recursive sorted listing', [1000, 2000, 4000], listing);

/** Returns a function that counts the active timers of this package, including unref'd ones. */
function countTimers() {
  const { setTimeout: set, clearTimeout: clear } = globalThis;
  const live = new Set();
  globalThis.setTimeout = (fn, ...rest) => {
    const own = new Error().stack.includes('/dist/base/time');
    const timer = set(
      (...args) => {
        live.delete(timer);
        fn(...args);
      },
      ...rest,
    );
    if (own) live.add(timer);
    return timer;
  };
  globalThis.clearTimeout = (timer) => {
    live.delete(timer);
    clear(timer);
  };
  return () => live.size;
}
