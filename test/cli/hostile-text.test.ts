import { describe, expect, test } from 'vitest';
import { useAlteredMember } from '../support/altered-member.ts';
import { runCli, startCli } from '../support/cli.ts';
import { serve } from '../support/clients.ts';
import { expectPrintable, HARMLESS, HOSTILE, unprintableIn } from '../support/hostile.ts';
import { raw } from '../support/locks.ts';
import { serveOpenly } from '../support/open-server.ts';
import { RawConnection, request } from '../support/raw-connection.ts';
import type { ScriptResult } from '../support/script.ts';
import { answer } from '../support/tcp-server.ts';
import { startOnTerminal } from '../support/terminal.ts';
import { until } from '../support/until.ts';
import { failed, rawAnswer } from '../support/v2-answers.ts';

const TEXTS = [...Object.values(HOSTILE), HARMLESS];
/** What a command line can carry. */
const ARGUMENTS = TEXTS.filter((text) => !text.includes('\0'));
const ALL = ARGUMENTS.join(' ');
const OURS = /^(etcd-v2-lock: |usage: )/;
const QUICK = ['--timeout', '0.3', '--', 'true'];

/** An etcd where others wrote hostile names, keys and values: "queue" is taken, "free" is not, "empty" directories are left over. */
async function useHostileEtcd(): Promise<string> {
  const { url } = await serveOpenly();
  const write = async (method: string, path: string, form?: Record<string, string>) => {
    const { status } = await raw(method, path.split('/').map(encodeURIComponent).join('/'), form, url);
    expect(status).toBeLessThan(300);
  };
  for (const text of TEXTS) {
    await write('POST', '/_locks/queue', { value: `shared:${text}`, ttl: '600' });
    await write('POST', '/_locks/queue', { value: `id:${text}:u1`, ttl: '' });
    await write('POST', `/_locks/of/${text}`, { value: text, ttl: '600' });
    await write('PUT', `/_locks/queue/${text}`, { value: text });
    await write('PUT', `/_locks/empty/${text}/x`, { value: text });
    await write('DELETE', `/_locks/empty/${text}/x`);
  }
  return url;
}

const on = (etcd: string, args: readonly string[], env = {}): Promise<ScriptResult> =>
  runCli(args, { ETCD_ENDPOINTS: etcd, ...env });

/** Every line on stderr is one of ours. */
function expectSafe({ stdout, stderr }: ScriptResult): void {
  expectPrintable(stdout);
  expectPrintable(stderr, OURS);
}

/** Every text in a JSON value, keys of objects too. */
const textsIn = (value: unknown): string[] => {
  if (typeof value === 'string') return [value];
  if (typeof value !== 'object' || value === null) return [];
  return Object.entries(value).flatMap(([key, inner]) => [key, ...textsIn(inner)]);
};

/** Texts in lines of JSON. */
const textsOf = (stdout: string): string[] =>
  textsIn(
    stdout
      .trimEnd()
      .split('\n')
      .map((line) => JSON.parse(line)),
  );

describe('what others wrote into queues is printed in printable characters', () => {
  test.each<[string, string[], number]>([
    ['ls', ['ls'], 0],
    ['inspect', ['inspect', 'queue'], 0],
    ['prune --dry-run', ['prune', '--dry-run'], 0],
    ['prune', ['prune'], 0],
    ['release without force', ['release', 'queue', '--uuid', 'nosuch'], 1],
    ['release of many', ['release', 'queue', '--uuid', 'u1'], 1],
    ['release of a holder', ['release', 'queue', '--uuid', TEXTS[0] ?? '', '--force'], 0],
    ['run with a timeout', ['run', 'queue', ...QUICK], 124],
    ['run with an exit code for a timeout', ['run', 'queue', '-E', '9', ...QUICK], 9],
    ['run if available', ['run', 'queue', '--if-available', '--', 'true'], 1],
    ['doctor', ['doctor', '--ttl', '600'], 0],
  ])('by %s', async (_, args, code) => {
    const etcd = await useHostileEtcd();
    const ended = await on(etcd, args);
    expect(ended.code, ended.stderr).toBe(code);
    expectSafe(ended);
    if (['ls', 'inspect', 'prune'].includes(args[0] ?? '')) expect(ended.stdout).toContain(HARMLESS);
  });

  test.each<[string, string[]]>([
    ['ls', ['ls']],
    ['inspect', ['inspect', 'queue']],
    ['prune', ['prune']],
  ])('by %s --json, which tells each of them as it is', async (_, args) => {
    const ended = await on(await useHostileEtcd(), [...args, '--json']);
    expect(ended).toMatchObject({ code: 0, stderr: '' });
    expectPrintable(ended.stdout);
    const told = textsOf(ended.stdout);
    for (const text of TEXTS) expect(told.some((one) => one.endsWith(text))).toBe(true);
  });

  test.each([[[]], [['--json']]])('by watch, and with %j as they are', async (json) => {
    const etcd = await useHostileEtcd();
    const { process: child, result } = startCli(['watch', 'queue', ...json], { ETCD_ENDPOINTS: etcd });
    let stdout = '';
    child.stdout.setEncoding('utf8').on('data', (chunk) => {
      stdout += chunk;
    });
    const lines = (count: number) => until(() => stdout.split('\n').length > count, Boolean);
    await lines(2 * TEXTS.length);
    await raw('POST', '/_locks/queue', { value: `id:${ALL}:u2`, ttl: '600' }, etcd);
    await lines(2 * TEXTS.length + 1);
    child.kill('SIGINT');
    const ended = await result;
    expect(ended.code).toBe(130);
    expectSafe({ ...ended, stdout });
    if (json.length > 0) expect(textsOf(stdout)).toEqual(expect.arrayContaining([...TEXTS, ALL]));
  });

  test('by run on a terminal while it waits', async () => {
    const etcd = await serveOpenly();
    await raw('POST', '/_locks/q', { value: `id:${HOSTILE['clears the screen']}\u202e\u009b2J:u1` }, etcd.url);
    const run = [process.execPath, 'dist/cli/main.js', 'run', 'q', '--timeout', '2', '--', 'true'];
    const terminal = startOnTerminal(run, { ETCD_ENDPOINTS: etcd.url });
    expect(await terminal.ended).toBe(124);
    const shown = terminal.shown().replaceAll('\r\u001b[K', '').replaceAll('\r\n', '');
    expect(shown).toContain(String.raw`waiting for q, held by a\u001b[2Jb\u202e\u009b2J, position 2 of 2`);
    expect(unprintableIn(shown)).toEqual([]);
  });

  test('by inspect on a terminal, in its own colours', async () => {
    const terminal = startOnTerminal([process.execPath, 'dist/cli/main.js', 'inspect', 'queue'], {
      ETCD_ENDPOINTS: await useHostileEtcd(),
      NO_COLOR: '',
    });
    expect(await terminal.ended).toBe(0);
    const [first = '', ...others] = terminal.shown().split('\r\n');
    expect([first.slice(0, 4), first.slice(-5)]).toEqual(['\u001b[1m', '\u001b[22m']);
    expect(unprintableIn([first.slice(4, -5), ...others].join(''))).toEqual([]);
  });
});

const commandLines: readonly (readonly [args: string[], code: number])[] = [
  [['run', ALL, '--', 'true'], 0],
  [['run', ALL, '--if-available', '--', `nosuch ${ALL}`], 127],
  [['run', 'free', '--', `${ALL}/x`], 127],
  [['run', 'free', '--timeout', ALL, '--', 'true'], 64],
  [['run', 'free', '-E', ALL, '--', 'true'], 64],
  [['run', 'free', '--identity', ALL.repeat(9), '--', 'true'], 64],
  [['run', `${ALL}//`, '--', 'true'], 64],
  [['inspect', ALL], 0],
  [['ls', ALL], 0],
  [['ls', `${ALL}//x`], 64],
  [['release', ALL, '--uuid', ALL], 1],
  [['release', 'free', '--key', `/${ALL}`], 64],
  [['ls', '--lock-prefix', ALL], 64],
  [['ls', '--endpoints', ALL.replaceAll(',', '')], 64],
  [['ls', '--endpoints', `http://127.0.0.1/${ALL}`], 64],
  [['ls', '--cacert', ALL], 64],
  [['ls', '--cert', ALL], 64],
  [['ls', '--user', ALL.replaceAll(':', '')], 64],
  [['ls', '--user', 'root', '--password-file', ALL], 64],
  [['serve', '--host', ALL], 125],
  [['serve', '--port', ALL], 64],
  [[ALL], 64],
  [['ls', `--no${ALL}`], 64],
  [['ls', `-${ALL}`], 64],
];

test.each(
  commandLines.map(([args, code]) => ({
    args,
    code,
    shown: JSON.stringify(args).replaceAll(JSON.stringify(ALL).slice(1, -1), '…'),
  })),
)('a command line is told of in printable characters: $shown', async ({ args, code }) => {
  const { url } = await serveOpenly();
  const ended = await on(url, args);
  expect(ended.code, ended.stderr).toBe(code);
  expectSafe(ended);
});

describe.each<[string, string]>([
  ['refuses with such words', rawAnswer(403, failed(107, ALL, ALL))],
  ['has failed with such words', rawAnswer(500, failed(300, ALL, ALL))],
  ['is a page', rawAnswer(200, ALL, { 'content-type': 'text/html' })],
])('an answer that %s is told of in printable characters', (_, hostile) => {
  test.each<string[][]>([
    [['ls']],
    [['inspect', 'queue']],
    [['watch', 'queue']],
    [['prune', '--json']],
    [['release', 'queue', '--uuid', 'u1']],
    [['run', 'queue', ...QUICK]],
    [['doctor']],
  ])('by %j', async (args) => {
    const { url } = await serve(answer(hostile));
    const ended = await on(url, args);
    expect(ended.code).not.toBe(0);
    expectSafe(ended);
  });
});

test.each([[[]], [['--json']]])('doctor %j tells of members in printable characters', async (json) => {
  const { url } = await serveOpenly();
  const member = await useAlteredMember((asked, { body }) => {
    if (asked.endsWith('/version'))
      return { body: JSON.stringify({ etcdserver: `3.4.${ALL}`, etcdcluster: `3.4.${ALL}` }) };
    if (asked.endsWith('/self')) return { body: JSON.stringify({ id: '1', name: ALL }) };
    if (!asked.endsWith('/members')) return { body };
    const other = { id: ALL, name: ALL, peerURLs: [], clientURLs: [`http://${ALL}`] };
    return { body: JSON.stringify({ members: [other, { ...other, id: '2', clientURLs: [] }] }) };
  }, url);
  const ended = await on(member, ['doctor', '--ttl', '600', ...json]);
  expect(ended).toMatchObject({ code: 0, stderr: '' });
  expectSafe(ended);
  if (json.length > 0) expect(textsOf(ended.stdout)).toContain(ALL);
  else expect(ended.stdout).toContain(HARMLESS);
});

describe('debug output has a line for each event, in printable characters', () => {
  const LINE = /^(\d{4}-\d\d-\d\dT[\d:.]+Z etcd-v2-lock:\w+ |etcd-v2-lock: )/;
  const LOUD = { DEBUG: 'etcd-v2-lock:*', DEBUG_COLORS: '0' };

  test.each<[string, string[], number]>([
    ['that waits', ['run', ALL, '--timeout', '1', '--', 'true'], 124],
    ['with an identity', ['run', 'free', '--identity', TEXTS[0] ?? '', '--', 'true'], 0],
  ])('of a client %s', async (_, args, code) => {
    const { url } = await serveOpenly();
    await raw('POST', `/_locks/${encodeURIComponent(ALL)}`, { value: ALL, ttl: '600' }, url);
    const ended = await on(url, args, LOUD);
    expect(ended.code).toBe(code);
    expect(ended.stderr).toContain('etcd-v2-lock:client ');
    expect(ended.stderr).toContain('etcd-v2-lock:lock ');
    expectPrintable(ended.stderr, LINE);
  });

  test('of a client whose servers fail', async () => {
    const { url } = await serve(answer(rawAnswer(500, failed(300, ALL, ALL))));
    const ended = await on(url, ['run', 'queue', '--timeout', '1', '--', 'true'], LOUD);
    expectPrintable(ended.stderr, LINE);
  });

  test('of the embedded server', async () => {
    const { process: child, result } = startCli(['serve', '--port', '0'], LOUD);
    let url = '';
    child.stdout.on('data', (chunk) => {
      url += chunk;
    });
    await until(
      () => url,
      (text) => text.endsWith('\n'),
    );
    url = url.trimEnd();
    await raw('PUT', `/${encodeURIComponent(ALL)}`, { value: ALL }, url);
    const connection = await RawConnection.open(url);
    connection.send(request('GET', '/v2/keys/a?wait=%0A'));
    await connection.wholeAnswers(1);
    child.kill('SIGTERM');
    const { stderr } = await result;
    expect(stderr).toContain('etcd-v2-lock:server PUT ');
    expect(stderr).toContain('etcd-v2-lock:server GET ');
    expectPrintable(stderr, LINE);
  });
});
