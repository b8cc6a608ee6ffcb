import { expect, inject, onTestFinished, test } from 'vitest';
import { startPython } from '../../../compat/python.ts';
import type { EntryJson } from '../../../src/cli/queues/show.ts';
import { renewCluster, startEtcd } from '../../support/etcd.ts';
import { gate } from '../../support/gate.ts';
import { raw, untilQueued, useProxy } from '../../support/locks.ts';
import { useManager } from '../../support/managers.ts';
import type { ProxiedRequest } from '../../support/proxy.ts';
import { ask, enqueue, startWatch, useLockName, type Watch } from '../../support/queues.ts';

interface PrintedEvent {
  readonly time: string;
  readonly index: number;
  readonly event: string;
  readonly entry?: EntryJson;
}

const isPoll = ({ query }: ProxiedRequest): boolean => query.has('wait');

const eventsOf = async (watch: Watch, count: number): Promise<PrintedEvent[]> =>
  (await watch.lines(count)).map((line) => JSON.parse(line) as PrintedEvent);

/** Waits for this many events and returns them as "event uuid". */
const printed = async (watch: Watch, count: number): Promise<string[]> =>
  (await eventsOf(watch, count)).map(({ event, entry }) => `${event} ${entry?.uuid}`);

/** Starts `watch` on an empty queue, and waits until it polls. */
async function watching(name: string): Promise<Watch> {
  const proxy = await useProxy();
  // A client of another test that retries may find this proxy at the port of its own, which has ended.
  const polled = proxy.next((request) => isPoll(request) && request.path.includes(name), 'headers');
  const watch = startWatch([name, '--json'], proxy.url);
  await polled;
  return watch;
}

const UUID = '0123456789abcdef0123456789abcdef';

test('watch prints the current queue, then one line per event', async () => {
  const name = useLockName();
  const first = await enqueue(name, 'u1');
  const second = await enqueue(name, 'shared:id:pod\u001b:u2', { ttl: '' });
  const third = await enqueue(name, `${UUID}@web-1%3A17%0d`);
  const watch = startWatch([name]);
  await watch.lines(4);
  await raw('DELETE', first);
  const [head, ...lines] = await watch.lines(6);
  expect(head).toMatch(/^TIME {10}INDEX +EVENT +KEY +MODE +CLIENT +TTL$/);
  const [one, two, three] = [first, second, third].map((key) => key.slice(-20));
  expect(
    lines.map((line) =>
      line
        .replace(/^\d\d:\d\d:\d\d\.\d{3} {2}\d+ +/, '')
        .replace(/\d+ s left/, 'some left')
        .split(/ {2,}/),
    ),
  ).toEqual([
    ['holds', one, 'exclusive', 'u1', 'some left'],
    ['waits', two, 'shared', String.raw`pod\u001b (u2)`, 'never expires'],
    ['waits', three, 'exclusive', String.raw`web-1:17\u000d (${UUID})`, 'some left'],
    ['released', one, 'exclusive', 'u1'],
    ['acquired', two, 'shared', String.raw`pod\u001b (u2)`, 'never expires'],
  ]);
  const column = head?.indexOf('CLIENT') ?? 0;
  expect(lines.map((line) => line.slice(column, column + 2))).toEqual(['u1', 'po', 'we', 'u1', 'po']);
  expect(await watch.end('SIGINT')).toMatchObject({ code: 130, stderr: '' });
});

test('watch prints the events of python-etcd and of this package, but no renewals', async () => {
  const name = useLockName();
  const watch = await watching(name);
  const python = await startPython(inject('etcd'));
  onTestFinished(() => python.kill());
  const lock = await python.lock(name);
  await lock.acquire({ lockTtl: 600 });
  const { uuid, lockKey } = await lock.state();
  await printed(watch, 2);
  const waiting = useManager({ ttl: 6 }).acquire(name);
  await untilQueued(name, 2);
  await printed(watch, 3);
  // On a held lock, acquire() renews by writing the value again.
  await lock.acquire({ lockTtl: 500 });
  await lock.release();
  const held = await waiting;
  const key = held.key;
  const expiration = async () => (await raw('GET', key)).body.node.expiration;
  const before = await expiration();
  await expect.poll(expiration, { timeout: 15_000 }).not.toBe(before);
  await held.release();
  expect(await printed(watch, 6)).toEqual([
    `queued ${uuid}`,
    `acquired ${uuid}`,
    `queued ${held.uuid}`,
    `released ${uuid}`,
    `acquired ${held.uuid}`,
    `released ${held.uuid}`,
  ]);
  const events = await eventsOf(watch, 6);
  expect(events[0]?.entry).toMatchObject({ name, key: lockKey, mode: 'exclusive', identity: null, ttl: 600 });
  expect(events.map(({ index }) => index)).toEqual(events.map(({ index }) => index).sort((a, b) => a - b));
  expect(await watch.end('SIGTERM')).toMatchObject({ code: 143, stderr: '' });
});

test('watch prints expired and re-created entries, and changed values', async () => {
  const name = useLockName();
  const watch = await watching(name);
  const key = await enqueue(name, 'u1');
  await enqueue(name, 'u2');
  await raw('PUT', key, { value: 'u1', ttl: '1' });
  const beginning = ['queued u1', 'acquired u1', 'queued u2', 'expired u1', 'acquired u2'];
  expect(await printed(watch, 5)).toEqual(beginning);
  await raw('PUT', key, { value: 'u1', ttl: '600' });
  await raw('PUT', key, { value: 'u9' });
  await raw('PUT', key, { value: '' });
  expect((await printed(watch, 9)).slice(5)).toEqual(['re-created u1', 'acquired u1', 'changed u9', 'wiped ']);
  await watch.end('SIGINT');
});

test('watch misses and repeats no event if the history of etcd has been cleared', async () => {
  const etcd = await startEtcd();
  onTestFinished(() => etcd.stop());
  const name = useLockName(etcd.url);
  const proxy = await useProxy(etcd.url);
  const [first] = [await enqueue(name, 'u1', { etcd: etcd.url }), await enqueue(name, 'u2', { etcd: etcd.url })];
  const written = gate();
  const stop = proxy.intercept((request) => (isPoll(request) ? { hold: written.opened } : undefined));
  const polled = proxy.next(isPoll, 'arrived');
  const watch = startWatch([name, '--json'], proxy.url);
  await polled;
  stop();
  await raw('DELETE', first, undefined, etcd.url);
  await enqueue(name, 'u3', { etcd: etcd.url });
  for (let write = 0; write < 1000; write += 100)
    await Promise.all(Array.from({ length: 100 }, () => raw('PUT', '/other', { value: 'x' }, etcd.url)));
  const cleared = proxy.next((request) => isPoll(request) && request.status === 400, 'answered');
  written.open();
  await cleared;
  await printed(watch, 5);
  await enqueue(name, 'u4', { etcd: etcd.url });
  expect(await printed(watch, 6)).toEqual(['holds u1', 'waits u2', 'gone u1', 'queued u3', 'acquired u2', 'queued u4']);
  expect(await watch.end('SIGINT')).toMatchObject({ code: 130, stderr: '' });
});

test('watch reads the queue again if a poll stays silent', { timeout: 90_000 }, async () => {
  const name = useLockName();
  const proxy = await useProxy();
  const first = await enqueue(name, 'u1');
  await enqueue(name, 'u2');
  const speak = proxy.intercept((request) => (isPoll(request) ? { silent: true } : undefined));
  const polled = proxy.next(isPoll, 'arrived');
  const watch = startWatch([name, '--json'], proxy.url);
  await polled;
  speak();
  await raw('DELETE', first);
  await watch.lines(4, { timeout: 60_000 });
  await enqueue(name, 'u3');
  expect(await printed(watch, 5)).toEqual(['holds u1', 'waits u2', 'gone u1', 'acquired u2', 'queued u3']);
  expect(await watch.end('SIGINT')).toMatchObject({ code: 130, stderr: '' });
});

test('watch reports an outage once, retries, and then prints the changes', async () => {
  const name = useLockName();
  const proxy = await useProxy();
  const first = await enqueue(name, 'u1');
  await enqueue(name, 'u2');
  const polled = proxy.next(isPoll, 'headers');
  const watch = startWatch([name, '--json'], proxy.url);
  await polled;
  const recover = proxy.intercept(() => ({ refuse: true }));
  await raw('DELETE', first);
  await watch.complains('cannot follow the queue, retrying: ');
  await enqueue(name, 'u3');
  recover();
  expect((await printed(watch, 5)).slice(-1)).toEqual(['queued u3']);
  const { code, stderr } = await watch.end('SIGINT');
  expect(code).toBe(130);
  expect(stderr).toMatch(
    /^etcd-v2-lock: cannot follow the queue, retrying: .*\netcd-v2-lock: following the queue again\n$/,
  );
});

test('watch reports another cluster, and prints the queue there', async () => {
  const etcd = await startEtcd();
  onTestFinished(() => etcd.stop());
  const name = useLockName(etcd.url);
  await enqueue(name, 'u1', { etcd: etcd.url });
  const watch = startWatch([name, '--json'], etcd.url);
  await printed(watch, 1);
  await renewCluster([etcd]);
  expect(await printed(watch, 2)).toEqual(['holds u1', 'cluster-changed undefined']);
  await enqueue(name, 'u2', { etcd: etcd.url });
  expect((await printed(watch, 4)).slice(2)).toEqual(['queued u2', 'acquired u2']);
  expect(await watch.end('SIGINT')).toMatchObject({ code: 130 });
});

test('watch exits at once if it cannot read the queue at the start', async () => {
  expect(await ask(['watch', 'x'], 'http://127.0.0.1:1')).toMatchObject({ code: 69, stdout: '' });
  expect(await ask(['watch', 'a//b'])).toMatchObject({ code: 64, stdout: '' });
});
