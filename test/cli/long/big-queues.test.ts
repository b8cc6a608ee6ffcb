import { beforeEach, describe, expect, test } from 'vitest';
import { useAlteredMember } from '../../support/altered-member.ts';
import { runCli } from '../../support/cli.ts';
import { serveOpenly } from '../../support/open-server.ts';
import { ask } from '../../support/queues.ts';

/** More than the maximum number of arguments of a function call. */
const MANY = 200_000;

/** Created once: a real store of this size would need seconds per response on a busy machine. */
function listings(): { readonly lock: string; readonly all: string } {
  const directory = { key: '/_locks/x', dir: true, modifiedIndex: 1, createdIndex: 1 };
  const nodes = Array.from({ length: MANY }, (_, at) => ({
    key: `/_locks/x/${String(at).padStart(20, '0')}`,
    value: `shared:${at}`,
    ttl: 600,
    modifiedIndex: at + 1,
    createdIndex: at + 1,
  }));
  const lock = { ...directory, nodes };
  return {
    lock: JSON.stringify({ action: 'get', node: lock }),
    all: JSON.stringify({ action: 'get', node: { ...directory, key: '/_locks', nodes: [lock] } }),
  };
}

describe('a queue of 200,000 holders', () => {
  const { lock, all } = listings();
  let url: string;
  beforeEach(async () => {
    const found = (body: string) => ({ status: 200, headers: { 'x-etcd-index': String(MANY) }, body });
    url = await useAlteredMember((asked) => {
      if (asked === 'GET /v2/keys/_locks/x') return found(lock);
      return asked === 'GET /v2/keys/_locks' ? found(all) : undefined;
    });
  });

  test('can be listed by ls', async () => {
    const { code, stdout, stderr } = await ask(['ls'], url);
    expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
    expect(stdout).toMatch(/^x +0 and 199999 more +shared +unknown +0 +- +\d+$/m);
  });

  test('can be shown by inspect, with one line per entry', async () => {
    const { code, stdout, stderr } = await ask(['inspect', 'x'], url);
    expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
    expect(stdout.split('\n').length).toBe(1 + MANY + 1);
  });

  test('can be shown by release if no entry matches', async () => {
    const { code, stderr } = await ask(['release', 'x', '--uuid', 'none'], url);
    expect({ code, lines: stderr.split('\n').length }).toEqual({ code: 1, lines: 2 + MANY + 1 });
  });

  test('can be handled by doctor, which uses the shortest TTL', async () => {
    const { code, stdout } = await ask(['doctor', '--json'], url);
    expect({ code, ttl: JSON.parse(stdout).basis.ttl }).toEqual({ code: 0, ttl: 600 });
  });
});

/** Returns a listing with one entry below many nested directories, built as text without recursion. */
function nestedListing(depth: number): { readonly name: string; readonly body: string } {
  const name = Array(depth).fill('a').join('/');
  const keyOf = (level: number): string => `/_locks${'/a'.repeat(level)}`;
  const open = Array.from({ length: depth + 1 }, (_, level) => `{"key":"${keyOf(level)}",${DIRECTORY},"nodes":[`);
  const entry = `{"key":"${keyOf(depth)}/${'1'.padStart(20, '0')}","value":"u1","ttl":600,"modifiedIndex":1,"createdIndex":1}`;
  return { name, body: `{"action":"get","node":${open.join('')}${entry}${']}'.repeat(depth + 1)}}` };
}

const DIRECTORY = '"dir":true,"modifiedIndex":1,"createdIndex":1';

test('ls, prune and doctor handle locks at the maximum nesting depth of keys', async () => {
  const { name, body } = nestedListing(1950);
  const url = await useAlteredMember((asked) =>
    asked === 'GET /v2/keys/_locks' ? { status: 200, headers: { 'x-etcd-index': '9' }, body } : undefined,
  );
  const [listed, pruned, diagnosis] = [
    await ask(['ls', '--json'], url),
    await ask(['prune', '--dry-run'], url),
    await ask(['doctor', '--json'], url),
  ];
  expect(JSON.parse(listed.stdout)).toMatchObject([{ name, waiters: 0 }]);
  expect(pruned).toMatchObject({ code: 0, stdout: '' });
  expect(JSON.parse(diagnosis.stdout).basis.ttl).toBe(600);
});

test('an internal RangeError is not reported as bad usage', async () => {
  const broken = 'globalThis.BigInt = () => { throw new RangeError("Maximum call stack size exceeded"); };';
  const { url, store } = await serveOpenly();
  store.createInOrder('/_locks/x', 'u1', { ttl: 600 });
  const { code, stdout, stderr } = await runCli(['inspect', 'x'], {
    ETCD_ENDPOINTS: url,
    NODE_OPTIONS: `--import data:text/javascript,${encodeURIComponent(broken)}`,
  });
  expect({ code, stdout }).toEqual({ code: 125, stdout: '' });
  expect(stderr).toBe('etcd-v2-lock: Maximum call stack size exceeded\n');
});

test.each([
  ['inspect', 'a//b'],
  ['watch', 'a//b'],
  ['release', 'a//b', '--uuid', 'u1'],
  ['ls', 'a//b/'],
  ['prune', 'a//b/'],
  ['doctor', '--ttl', '-1'],
  ['doctor', '--lock-prefix', 'a'],
  ['ls', '--lock-prefix', 'a'],
  ['run', 'a//b', '--', 'true'],
  ['run', 'x', '--ttl', '0.5', '--', 'true'],
  ['run', 'x', '--identity', '', '--', 'true'],
  ['serve', '--port', '65536'],
  ['serve', '--host', ''],
])('an invalid value is bad usage: %s %s %s %s %s', async (...args) => {
  const { code, stdout, stderr } = await runCli(args, { ETCD_ENDPOINTS: 'http://127.0.0.1:1' });
  expect({ code, stdout }).toEqual({ code: 64, stdout: '' });
  expect(stderr).toMatch(/^etcd-v2-lock: .* must .*, got /);
});
