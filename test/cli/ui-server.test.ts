import { once } from 'node:events';
import { writeFileSync } from 'node:fs';
import { request } from 'node:https';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { scheduleFor } from '../../src/cli/queues/ticks.ts';
import type { ShownJobs, ShownQueue, Snapshot, SnapshotChange } from '../../src/cli/ui/shapes.ts';
import { TlsFiles } from '../../src/http/tls/files.ts';
import { formatRecord } from '../../src/manager/once/record.ts';
import type { Schedule } from '../../src/manager/once/schedule.ts';
import { makeAuthority } from '../support/certificates.ts';
import { RawConnection } from '../support/raw-connection.ts';
import { read } from '../support/readme.ts';
import { temporaryDirectory } from '../support/temporary.ts';
import { ask, entryOf, follow, remove, type Ui, useUi, write } from '../support/ui.ts';
import { until } from '../support/until.ts';

const TOKEN = 'correct-horse+battery=staple';
const ALL_PATHS = [
  '/',
  '/page.js',
  '/api/locks',
  '/api/locks/x',
  '/api/jobs',
  '/api/checks',
  '/api/move',
  '/api/events',
];

describe('the server of the page refuses', () => {
  test.each(ALL_PATHS)('a request for %s whose host is not its own, as after DNS rebinding', async (path) => {
    const { url } = await useUi();
    const { status, body } = await ask(`${url}${path}`, { host: 'evil.example:4080' });
    expect([status, body]).toEqual([403, expect.stringContaining('host "evil.example:4080" is not allowed')]);
  });

  test.each(ALL_PATHS.slice(1))('a request for %s from a page of another site', async (path) => {
    const { url } = await useUi();
    const host = new URL(url).host;
    const foreign = [
      { origin: 'http://evil.example' },
      { origin: 'null' },
      { origin: 'http://127.0.0.1:1' },
      { 'sec-fetch-site': 'cross-site' },
      { 'sec-fetch-site': 'same-site' },
      { 'sec-fetch-site': 'cross-site', 'sec-fetch-mode': 'navigate', 'sec-fetch-dest': 'iframe' },
    ];
    for (const headers of foreign) expect((await ask(`${url}${path}`, headers)).status).toBe(403);
    expect((await ask(`${url}${path}`, { origin: `http://${host}` }, 'HEAD')).status).toBe(405);
  });

  test.each(['POST', 'PUT', 'DELETE', 'PATCH', 'HEAD', 'OPTIONS'])('%s: it changes nothing', async (method) => {
    const { url } = await useUi();
    for (const path of ALL_PATHS) {
      const { status, headers } = await ask(`${url}${path}`, {}, method);
      expect([status, headers.allow]).toEqual([405, 'GET']);
    }
  });

  test('a request without its token, or with another one', async () => {
    const { url } = await useUi({ token: TOKEN });
    for (const path of ALL_PATHS) {
      expect((await ask(`${url}${path}`)).status).toBe(401);
      for (const wrong of [`${TOKEN}x`, TOKEN.slice(1), TOKEN.toUpperCase(), ''])
        expect((await ask(`${url}${path}`, { authorization: `Bearer ${wrong}` })).status).toBe(401);
      expect((await ask(`${url}${path}?token=wrong`)).status).toBe(401);
      expect((await ask(`${url}${path}`, { cookie: `etcd-v2-lock-ui=${TOKEN}` })).status).toBe(401);
    }
    expect((await ask(url)).body).toContain('the token is missing');
  });

  test('what it does not have', async () => {
    const { url } = await useUi();
    for (const path of ['/../package.json', '/api', '/api/locks/', '/api/locks/%ff', '/%2e%2e/x', '/page.css'])
      expect((await ask(`${url}${path}`)).status).toBe(404);
  });

  test('more than 100 viewers', async () => {
    const { url, viewers } = await useUi();
    const all = await Promise.all(Array.from({ length: 100 }, () => follow(`${url}/api/events`)));
    const { status, body } = await ask(`${url}/api/events`);
    expect([status, body]).toEqual([503, expect.stringContaining('there are already 100 viewers')]);
    all[0]?.close();
    await until(
      () => viewers.count,
      (count) => count === 99,
    );
    expect((await follow(`${url}/api/events`)).answer.statusCode).toBe(200);
  });

  test('viewers behind another request on their connection, which could not be seen to leave', async () => {
    const { url, viewers } = await useUi();
    const connection = await RawConnection.open(url);
    const get = `GET /api/events HTTP/1.1\r\nHost: ${new URL(url).host}\r\n\r\n`;
    connection.socket.write(get.repeat(120));
    await until(
      () => connection.text,
      (text) => text.includes('event: snapshot'),
    );
    expect((await ask(`${url}/api/locks`)).status).toBe(200);
    expect(viewers.count).toBe(1);
  });

  test('headers without end', async () => {
    const { url } = await useUi();
    const connection = await RawConnection.open(url);
    connection.send(`GET / HTTP/1.1\r\nHost: 127.0.0.1\r\nX: ${'x'.repeat(20_000)}\r\n\r\n`);
    expect((await connection.wholeAnswers(1))[0]?.status).toBe(431);
  });
});

describe('the server of the page allows', () => {
  test('a link on any site to open the page, but not its data', async () => {
    const { url } = await useUi();
    const link = { 'sec-fetch-site': 'cross-site', 'sec-fetch-mode': 'navigate', 'sec-fetch-dest': 'document' };
    expect((await ask(url, link)).status).toBe(200);
    expect((await ask(`${url}/api/locks`, link)).status).toBe(403);
  });

  test('requests with its token in a header', async () => {
    const { url } = await useUi({ token: TOKEN });
    expect((await ask(`${url}/api/locks`, { authorization: `Bearer ${TOKEN}` })).status).toBe(200);
    const { answer } = await follow(`${url}/api/events`, { authorization: `bearer ${TOKEN}` });
    expect(answer.statusCode).toBe(200);
  });

  test('a browser that has opened the page once with the token, which then leaves the address bar', async () => {
    const { url } = await useUi({ token: TOKEN });
    const { status, headers } = await ask(`${url}/?token=${TOKEN}`);
    expect([status, headers.location]).toEqual([303, './']);
    const [cookie = ''] = headers['set-cookie'] ?? [];
    expect(cookie).toMatch(/^etcd-v2-lock-ui=[0-9a-f]{64}; Path=\/; HttpOnly; SameSite=Lax$/);
    expect(cookie).not.toContain(TOKEN);
    const own = { cookie: `other=1; ${cookie.split(';')[0]}` };
    for (const path of ['/', '/page.js', '/api/locks']) expect((await ask(`${url}${path}`, own)).status).toBe(200);
    const other = await useUi({ token: `${TOKEN}x` });
    expect((await ask(other.url, own)).status).toBe(401);
  });

  test('clients with a certificate of its authority only', async () => {
    const [authority, stranger, directory] = [makeAuthority(), makeAuthority(), temporaryDirectory()];
    const { cert, key } = authority.issue();
    const file = (name: string, text: string): string => {
      writeFileSync(join(directory, name), text);
      return join(directory, name);
    };
    const tls = new TlsFiles({
      certFile: file('cert', cert),
      keyFile: file('key', key),
      caFile: file('ca', authority.ca),
    });
    const { url } = await useUi({ tls });
    const status = async (identity: object): Promise<unknown> => {
      const sent = request(url, { ca: authority.ca, agent: false, ...identity }).end();
      const [answer] = await once(sent, 'response');
      answer.resume();
      return answer.statusCode;
    };
    expect(await status(authority.issue())).toBe(200);
    await expect(status({})).rejects.toThrow();
    await expect(status(stranger.issue())).rejects.toThrow();
  });
});

test('every answer forbids inline scripts, other sites, frames, caches and referrers', async () => {
  const { url } = await useUi({ token: TOKEN });
  const known = { authorization: `Bearer ${TOKEN}` };
  const answers = [await ask(url), await ask(url, { host: 'evil' }), await ask(url, known, 'POST')];
  for (const path of ['/', '/page.js', '/api/locks', '/none']) answers.push(await ask(`${url}${path}`, known));
  for (const { headers } of answers) {
    expect(headers).toMatchObject({
      'cache-control': 'no-store',
      'referrer-policy': 'no-referrer',
      'x-content-type-options': 'nosniff',
      'x-frame-options': 'DENY',
      'cross-origin-resource-policy': 'same-origin',
    });
    const policy = headers['content-security-policy'];
    expect(policy).toMatch(/^default-src 'none'; script-src 'self'; style-src 'self'; /);
    expect(policy).toMatch(/frame-ancestors 'none'/);
    expect(policy).not.toMatch(/unsafe|\*|https?:/);
    expect(headers).not.toHaveProperty('access-control-allow-origin');
  }
});

test('a viewer gets all locks, then what changes', async () => {
  const ui = await useUi();
  const [holder, waiter] = [entryOf('jobs/a', 1, 'u1', 30), entryOf('jobs/a', 2, 'u2', 30)];
  write(ui, holder);
  const events = await follow(`${ui.url}/api/events`);
  expect(events.answer.headers['content-type']).toBe('text/event-stream');
  const { locks, stores, now } = await events.next<Snapshot>('snapshot');
  expect(Math.abs(now - Date.now())).toBeLessThan(60_000);
  expect(stores).toMatchObject([{ api: 'v2', outage: null, omitted: 0 }]);
  expect(locks).toMatchObject([
    {
      name: 'jobs/a',
      holder: { uuid: 'u1', key: holder.key },
      holders: 1,
      waiters: 0,
      waitingSince: null,
      ttl: { left: 30 },
    },
  ]);
  write(ui, waiter);
  const queued = await events.next<SnapshotChange>('change');
  expect(queued).toMatchObject({ locks: [{ id: locks[0]?.id, waiters: 1, isWaitKnown: true }], gone: [], ttls: {} });
  write(ui, { ...holder, ttl: 29 });
  const renewed = await events.next<SnapshotChange>('change');
  expect(renewed).toMatchObject({ locks: [], gone: [], ttls: { [locks[0]?.id ?? '']: { left: 29 } } });
  remove(ui, holder);
  expect(await events.next<SnapshotChange>('change')).toMatchObject({
    locks: [{ holder: { uuid: 'u2' }, waiters: 0 }],
  });
  remove(ui, waiter);
  expect(await events.next<SnapshotChange>('change')).toMatchObject({ locks: [], gone: [locks[0]?.id] });
  expect(JSON.parse((await ask(`${ui.url}/api/locks`)).body)).toMatchObject({ locks: [] });
});

test('a viewer of one lock gets its queue, whom each entry waits for, and what has happened', async () => {
  const ui = await useUi();
  const name = 'jobs/nightly report';
  const url = `${ui.url}/api/events?lock=${encodeURIComponent(name)}`;
  const events = await follow(url);
  expect(await events.next('lock')).toMatchObject({ name, queues: [], history: [] });
  const [first, second] = [entryOf(name, 1, 'id:web-1:u1', 30), entryOf(name, 2, 'limit:2:u2', 30)];
  write(ui, first);
  write(ui, entryOf('other', 1, 'u3'));
  expect(await events.next('lock')).toMatchObject({
    queues: [{ api: 'v2', holders: 1, waiters: 0, entries: [{ state: 'holds', identity: 'web-1', waitsFor: null }] }],
    history: [{ kind: 'queued' }, { kind: 'acquired' }],
  });
  write(ui, second);
  const entry = { state: 'waits', limit: 2, kind: 'this package', waitsFor: { key: first.key, count: 1 } };
  expect(await events.next('lock')).toMatchObject({ queues: [{ waiters: 1, entries: [{}, entry] }] });
  write(ui, { ...second, ttl: 20 });
  expect(await events.next('lock')).toMatchObject({ queues: [{ entries: [{}, { ttl: { left: 20 } }] }] });
  remove(ui, first);
  const { history } = await events.next<ShownQueue>('lock');
  expect(history.map(({ kind }) => kind)).toEqual(['queued', 'acquired', 'queued', 'released', 'acquired']);
  const answer = await ask(`${ui.url}/api/locks/${encodeURIComponent(name)}`);
  expect(JSON.parse(answer.body)).toMatchObject({ queues: [{ entries: [{ key: second.key }] }] });
  expect(answer.headers['content-type']).toBe('application/json');
  expect(events.events.filter(({ event }) => event === 'lock')).toHaveLength(5);
});

test('the history says since when it has all events, if older ones are not kept', async () => {
  const ui = await useUi();
  const queue = async () => JSON.parse((await ask(`${ui.url}/api/locks/x`)).body) as ShownQueue;
  const entry = entryOf('x', 1, 'u1');
  write(ui, entry);
  const first = await queue();
  expect(first.recordedSince).toBe(first.startedAt);
  // One lock has 200 events, and all locks together 1,000.
  for (let at = 0; at < 100; at += 1) {
    remove(ui, entry);
    write(ui, entry);
  }
  const second = await queue();
  expect(second.history).toHaveLength(200);
  expect(second.recordedSince).toBe(second.history[0]?.at);
  await until(
    () => Date.now(),
    (now) => now > second.recordedSince + 1,
  );
  const others = Date.now();
  for (let at = 0; at < 500; at += 1) write(ui, entryOf(`other-${at}`, 1, 'u1'));
  const third = await queue();
  expect(third.history).toEqual([]);
  expect(third.recordedSince).toBeGreaterThanOrEqual(others);
});

test('the TTLs of open locks and of the most urgent ones are read, and nothing while nobody looks', async () => {
  const ui = await useUi();
  for (let at = 0; at < 30; at += 1) write(ui, entryOf(`lock-${String(at).padStart(2, '0')}`, at, 'u1', 30));
  write(ui, entryOf('lock-29', 30, 'u2', 30));
  expect(ui.viewers.shown('v2')).toEqual([]);
  // What a viewer asks for may be no name of a lock.
  const open = ['lock-28', '../x', '/', 'unused'].map((name) =>
    follow(`${ui.url}/api/events?lock=${encodeURIComponent(name)}`),
  );
  await Promise.all(open);
  expect(ui.viewers.shown('v2')).toEqual(['lock-28']);
  await follow(`${ui.url}/api/events`);
  const listed = ['lock-29', ...Array.from({ length: 19 }, (_, at) => `lock-${String(at).padStart(2, '0')}`)];
  expect(ui.viewers.shown('v2')).toEqual(['lock-28', ...listed]);
});

test('jobs are shown with the tick that a host has begun last, and read at most once per second', async () => {
  const ui = await useUi();
  const jobs = async () => JSON.parse((await ask(`${ui.url}/api/jobs`)).body) as ShownJobs;
  const at = Date.UTC(2026, 10, 28, 3);
  ui.records.set('import', formatRecord({ at, state: 'ran', uuid: '1'.repeat(32), label: 'db-3' }));
  ui.records.set('broken', 'x');
  const { unlisted, jobs: shown } = await jobs();
  expect(unlisted).toEqual([]);
  expect(shown).toEqual([
    { api: 'v3', name: 'import', lastTick: at, state: 'ran', host: 'db-3', missed: null },
    { api: 'v3', name: 'broken', lastTick: null, state: 'unreadable', host: null, missed: null },
  ]);
  ui.records.clear();
  expect((await jobs()).jobs).toHaveLength(2);
  await until(jobs, (answer) => answer.jobs.length === 0);
});

test('missed ticks of jobs with a schedule are counted, and such a job without a record is shown', async () => {
  const hour = 3_600_000;
  const schedules = new Map([
    ['import', scheduleFor('1h', undefined)],
    ['never', scheduleFor('1h', undefined)],
    ['broken', scheduleFor('@daily', undefined)],
  ]);
  const ui = await useUi({ schedules });
  const present = Math.floor(Date.now() / hour) * hour;
  ui.records.set('import', formatRecord({ at: present - 3 * hour, state: 'ran', uuid: '1'.repeat(32), label: 'db-3' }));
  ui.records.set('other', formatRecord({ at: present, state: 'begun', uuid: '1'.repeat(32), label: undefined }));
  ui.records.set('broken', 'x');
  const missed = async () => {
    const { jobs } = JSON.parse((await ask(`${ui.url}/api/jobs`)).body) as ShownJobs;
    return Object.fromEntries(jobs.map((job) => [job.name, `${job.state}, ${job.missed}`]));
  };
  expect(await missed()).toEqual({
    import: 'ran, 3',
    other: 'begun, null',
    broken: 'unreadable, null',
    never: 'no record, null',
  });
  ui.records.set('import', formatRecord({ at: present, state: 'ran', uuid: '1'.repeat(32), label: 'db-3' }));
  await until(missed, (jobs) => jobs['import'] === 'ran, 0');
});

test('the ticks of a job are counted once, and then only those since the last count', async () => {
  const counted: (readonly [number, number])[] = [];
  const schedule: Schedule = {
    ...scheduleFor('1s', undefined),
    between(from, to) {
      counted.push([from, to]);
      return scheduleFor('1s', undefined).between(from, to);
    },
  };
  const ui = await useUi({ schedules: new Map([['import', schedule]]) });
  const at = Math.floor(Date.now() / 1000) * 1000 - 100_000;
  ui.records.set('import', formatRecord({ at, state: 'ran', uuid: '1'.repeat(32), label: undefined }));
  const missed = async () => {
    const { now, jobs } = JSON.parse((await ask(`${ui.url}/api/jobs`)).body) as ShownJobs;
    return { now, missed: jobs[0]?.missed };
  };
  const first = await missed();
  const second = await until(missed, ({ now }) => now > first.now);
  for (const each of [first, second]) expect(each.missed).toBe(Math.ceil(each.now / 1000) - at / 1000 - 1);
  expect(counted[0]?.[0]).toBe(at);
  expect(counted[1]?.[0]).toBe((counted[0]?.[1] ?? 0) - 1);
});

test('an outage of etcd is an event, and so is its end', async () => {
  const ui = await useUi();
  const events = await follow(`${ui.url}/api/events`);
  const open = await follow(`${ui.url}/api/events?lock=x`);
  await events.next('snapshot');
  await open.next('lock');
  ui.model.failed('connect ECONNREFUSED');
  ui.viewers.changed();
  const outage = { message: 'connect ECONNREFUSED', since: ui.model.seenAt };
  expect(await events.next('change')).toMatchObject({ stores: [{ outage }] });
  expect(await open.next('lock')).toMatchObject({ stores: [{ outage }] });
  write(ui, entryOf('x', 1, 'u1'));
  expect(await events.next('change')).toMatchObject({ stores: [{ outage: null }], locks: [{ name: 'x' }] });
});

test('the list shows what the leader of an election publishes, and its queue what each candidate would publish', async () => {
  const ui = await useUi();
  const candidate = (rank: number) =>
    entryOf('api', rank, `${String(rank).repeat(32)}@web-${rank}@http%3A%2F%2F10.0.0.${rank}`);
  write(ui, candidate(1));
  write(ui, candidate(2));
  const { locks } = JSON.parse((await ask(`${ui.url}/api/locks`)).body) as Snapshot;
  write(ui, entryOf('no-election', 3, `${'3'.repeat(32)}@web-3`));
  expect(locks).toMatchObject([{ value: 'http://10.0.0.1', waiters: 1, candidates: 2 }]);
  const { locks: all } = JSON.parse((await ask(`${ui.url}/api/locks`)).body) as Snapshot;
  expect(all.map(({ name, candidates }) => [name, candidates])).toEqual([
    ['api', 2],
    ['no-election', 0],
  ]);
  const { queues } = JSON.parse((await ask(`${ui.url}/api/locks/api`)).body) as ShownQueue;
  expect(queues[0]?.entries.map(({ value }) => value)).toEqual(['http://10.0.0.1', 'http://10.0.0.2']);
});

test('long texts of clients are cut', async () => {
  const ui = await useUi();
  write(ui, entryOf('x', 1, `id:${'i'.repeat(2 ** 20)}:u1`));
  write(ui, entryOf('n'.repeat(2 ** 20), 2, 'u'.repeat(2 ** 20)));
  write(ui, entryOf('half', 3, `${'a'.repeat(199)}🎉🎉`));
  const { body } = await ask(`${ui.url}/api/locks`);
  expect(body.length).toBeLessThan(10_000);
  const { locks } = JSON.parse(body) as Snapshot;
  const [, long, half] = locks;
  expect([long?.isCut, long?.name.length]).toEqual([true, 1001]);
  expect(half?.holder.uuid).toBe(`${'a'.repeat(199)}…`);
  expect((await ask(`${ui.url}/api/locks/x`)).body.length).toBeLessThan(3000);
});

/** Fills the model with locks whose JSON is larger than what a socket takes: 4 MB. */
function fill(ui: Ui, round: number, count = 2000): void {
  for (let at = 0; at < count; at += 1) write(ui, entryOf(`lock-${at}-${'x'.repeat(900)}`, 1, `u${round}`, 30));
}

test('a viewer that reads slowly gets all locks anew, instead of each change', async () => {
  const ui = await useUi();
  fill(ui, 0);
  const slow = await follow(`${ui.url}/api/events`);
  slow.answer.pause();
  const quick = await follow(`${ui.url}/api/events`);
  await quick.next('snapshot');
  for (let round = 1; round <= 10; round += 1) {
    fill(ui, round);
    await quick.next('change');
  }
  slow.answer.resume();
  const last = await until(
    () => slow.events.findLast(({ event }) => event === 'snapshot')?.data as Snapshot | undefined,
    (snapshot) => snapshot?.locks[0]?.holder.uuid === 'u10',
  );
  expect(last?.locks).toHaveLength(2000);
  // The system has taken some of ten changes of 4 MB. The server has kept none of the others.
  expect(slow.events.filter(({ event }) => event === 'change').length).toBeLessThan(10);
});

test('a viewer that reads nothing is cut off', async () => {
  const ui = await useUi({ patience: 100 });
  fill(ui, 0);
  const dead = await follow(`${ui.url}/api/events`);
  dead.answer.pause();
  fill(ui, 1);
  await until(
    () => ui.viewers.count,
    (count) => count === 0,
  );
});

test('fifty viewers get the same bytes, encoded once', async () => {
  const ui = await useUi();
  fill(ui, 0, 100);
  const all = await Promise.all(Array.from({ length: 50 }, () => follow(`${ui.url}/api/events`)));
  const snapshots = await Promise.all(all.map((events) => events.next<Snapshot>('snapshot')));
  expect(new Set(snapshots.map(({ now }) => now)).size).toBe(1);
  for (const events of all) events.close();
  await until(
    () => ui.viewers.count,
    (count) => count === 0,
  );
});

test('/api/locks answers with the fields that docs/ui.md shows', async () => {
  const ui = await useUi();
  write(ui, entryOf('jobs/nightly-report', 5, 'uuid@web-1%3A17', 20));
  const [, shown = ''] = /```json\n(.*?)```/s.exec(read('docs/ui.md')) ?? [];
  const fieldsOf = (json: string): string[] => {
    const fields: string[] = [];
    JSON.parse(json, (name, value) => {
      fields.push(name);
      return value;
    });
    return [...new Set(fields)].sort();
  };
  expect(fieldsOf((await ask(`${ui.url}/api/locks`)).body)).toEqual(fieldsOf(shown));
});
