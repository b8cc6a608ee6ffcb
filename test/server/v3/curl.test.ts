// The requests that etcd's documentation of the JSON gateway shows, sent by the real curl: it names forms as the type of its bodies.
import { execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { promisify } from 'node:util';
import { expect, onTestFinished, test } from 'vitest';
import { EmbeddedEtcd } from '../../../src/server/index.ts';
import { startEtcd } from '../../support/etcd.ts';
import { base64 } from '../../support/gateway.ts';
import { tied } from '../../support/tied.ts';
import { until } from '../../support/until.ts';

const execute = promisify(execFile);
const FOO = base64('foo');
const BAR = base64('bar');

/** Etcd and an embedded server, both new: their revisions are the same. */
async function startBoth(): Promise<readonly string[]> {
  const [etcd, embedded] = await Promise.all([startEtcd(), EmbeddedEtcd.start()]);
  onTestFinished(async () => {
    await Promise.all([etcd.stop(), embedded.stop()]);
  });
  return [etcd.url, embedded.url];
}

/** Replaces what two clusters never have in common. */
const masked = (text: string): string =>
  text
    .replace(/"(cluster_id|member_id|raft_term)":"\d+"/g, '"$1":"…"')
    .replace(/"token":"[A-Za-z]{16}\.\d+"/g, '"token":"…"');

const command = (url: string, message: object, options: readonly string[]): [string, ...string[]] =>
  tied(['curl', '-sS', ...options, url, '-X', 'POST', '-d', JSON.stringify(message)]);

/** Returns the answer to a request, with its status and type. */
async function curl(url: string, message: object, ...options: readonly string[]): Promise<string> {
  const [program, ...args] = command(url, message, ['-L', '-w', '\n%{http_code} %{content_type}', ...options]);
  return (await execute(program, args)).stdout;
}

/** Sends a request to both servers. Returns the answer, which is the same but for what is masked. */
async function ask(servers: readonly string[], path: string, message: object, ...options: readonly string[]) {
  const [real, ours] = await Promise.all(servers.map((url) => curl(`${url}${path}`, message, ...options)));
  expect(masked(ours ?? ''), path).toBe(masked(real ?? ''));
  return masked(real ?? '');
}

const header = (revision: number): string =>
  `"header":{"cluster_id":"…","member_id":"…","revision":"${revision}","raft_term":"…"}`;
const OK = '\n200 application/json';

/** Starts a watch. Returns a function that returns the answers so far. */
function watch(url: string, message: object): () => string {
  const [program, ...args] = command(`${url}/v3/watch`, message, ['-N']);
  const process = spawn(program, args, { stdio: ['ignore', 'pipe', 'inherit'] });
  onTestFinished(async () => {
    const closed = once(process, 'close');
    process.kill();
    await closed;
  });
  let output = '';
  process.stdout.setEncoding('utf8').on('data', (text: string) => {
    output += text;
  });
  return () => masked(output);
}

const lines = (count: number) => (text: string) => text.split('\n').length > count;

test('etcd and the embedded server answer curl alike: put, range, watch and txn', async () => {
  const servers = await startBoth();
  const put = (value: string) => ask(servers, '/v3/kv/put', { key: FOO, value });
  const first = `{"key":"${FOO}","create_revision":"2","mod_revision":"2","version":"1","value":"${BAR}"}`;
  expect(await put(BAR)).toBe(`{${header(2)}}${OK}`);

  const found = `{${header(2)},"kvs":[${first}],"count":"1"}${OK}`;
  expect(await ask(servers, '/v3/kv/range', { key: FOO })).toBe(found);
  expect(await ask(servers, '/v3/kv/range', { key: FOO, range_end: base64('fop') })).toBe(found);
  // The path of older clients.
  expect(await ask(servers, '/v3beta/kv/range', { key: FOO })).toBe(found);

  const watches = servers.map((url) => watch(url, { create_request: { key: FOO } }));
  for (const answers of watches) await until(answers, lines(1));
  await put(BAR);
  const [real, ours] = await Promise.all(watches.map((answers) => until(answers, lines(2))));
  expect(ours).toBe(real);
  const second = `{"key":"${FOO}","create_revision":"2","mod_revision":"3","version":"2","value":"${BAR}"}`;
  expect(real).toBe(
    `{"result":{${header(2)},"created":true}}\n{"result":{${header(3)},"events":[{"kv":${second}}]}}\n`,
  );

  const created = { target: 'CREATE', key: FOO, createRevision: '2' };
  const putAgain = { compare: [created], success: [{ requestPut: { key: FOO, value: BAR } }] };
  const response = '{"response_put":{"header":{"revision":"4"}}}';
  expect(await ask(servers, '/v3/kv/txn', putAgain)).toBe(
    `{${header(4)},"succeeded":true,"responses":[${response}]}${OK}`,
  );

  const version = { version: '4', result: 'EQUAL', target: 'VERSION', key: FOO };
  const readAgain = { compare: [version], success: [{ requestRange: { key: FOO } }] };
  expect(await ask(servers, '/v3/kv/txn', readAgain)).toBe(`{${header(4)}}${OK}`);
  await put(base64('baz'));
  expect(await ask(servers, '/v3/kv/txn', readAgain)).toContain(`"version":"4","value":"${base64('baz')}"`);
});

test('etcd and the embedded server answer curl alike: authentication', async () => {
  const servers = await startBoth();
  const root = { name: 'root', password: 'pass' };
  const put = { key: FOO, value: BAR };
  expect(await ask(servers, '/v3/auth/authenticate', root)).toContain('authentication is not enabled');
  for (const [path, message] of [
    ['user/add', root],
    ['role/add', { name: 'root' }],
    ['user/grant', { user: 'root', role: 'root' }],
    ['enable', {}],
  ] as const)
    expect(await ask(servers, `/v3/auth/${path}`, message), path).toBe(`{${header(1)}}${OK}`);

  expect(await ask(servers, '/v3/auth/authenticate', root)).toBe(`{${header(1)},"token":"…"}${OK}`);
  const answers = await Promise.all(
    servers.map(async (url) => {
      const [body = ''] = (await curl(`${url}/v3/auth/authenticate`, root)).split('\n');
      const { token } = JSON.parse(body) as { token: string };
      return masked(await curl(`${url}/v3/kv/put`, put, '-H', `Authorization: ${token}`));
    }),
  );
  expect(answers).toEqual([`{${header(2)}}${OK}`, `{${header(2)}}${OK}`]);

  expect(await ask(servers, '/v3/auth/authenticate', { ...root, password: 'x' })).toContain('\n400 ');
  expect(await ask(servers, '/v3/kv/put', put)).toContain('user name is empty');
  expect(await ask(servers, '/v3/kv/put', put, '-H', 'Authorization: x')).toContain('invalid auth token');
});
