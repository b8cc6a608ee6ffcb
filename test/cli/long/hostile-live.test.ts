import { describe, expect, test } from 'vitest';
import { runCli, startCli } from '../../support/cli.ts';
import { serve } from '../../support/clients.ts';
import { expectPrintable, HOSTILE, unprintableIn } from '../../support/hostile.ts';
import { ALL, expectSafe, TEXTS, textsOf, useHostileEtcd } from '../../support/hostile-etcd.ts';
import { raw } from '../../support/locks.ts';
import { serveOpenly } from '../../support/open-server.ts';
import { RawConnection, request } from '../../support/raw-connection.ts';
import { answer } from '../../support/tcp-server.ts';
import { startOnTerminal } from '../../support/terminal.ts';
import { until } from '../../support/until.ts';
import { failed, rawAnswer } from '../../support/v2-answers.ts';

describe('untrusted text in queues is printed with unprintable characters escaped', () => {
  test.each([[[]], [['--json']]])('by watch %j', async (json) => {
    const etcd = await useHostileEtcd();
    const { process: child, result } = startCli(['watch', 'queue', ...json], { ETCD_ENDPOINTS: etcd });
    let stdout = '';
    child.stdout.setEncoding('utf8').on('data', (chunk) => {
      stdout += chunk;
    });
    const lines = (count: number) => until(() => stdout.split('\n').length > count, Boolean);
    await lines(3 * TEXTS.length);
    await raw('POST', '/_locks/queue', { value: `id:${ALL}:u2`, ttl: '600' }, etcd);
    await lines(3 * TEXTS.length + 1);
    child.kill('SIGINT');
    const ended = await result;
    expect(ended.code).toBe(130);
    expectSafe({ ...ended, stdout });
    if (json.length > 0) expect(textsOf(stdout)).toEqual(expect.arrayContaining([...TEXTS, ALL]));
  });

  test('by run on a terminal while it waits', async () => {
    const etcd = await serveOpenly();
    await raw('POST', '/_locks/q', { value: `id:${HOSTILE['clears the screen']}\u202e\u009b2J:u1` }, etcd.url);
    const run = [process.execPath, 'dist/cli/main.js', 'run', 'q', '--', 'true'];
    const terminal = startOnTerminal(run, { ETCD_ENDPOINTS: etcd.url });
    await terminal.shows(/position 2 of 2/);
    terminal.type('\x03');
    expect(await terminal.ended).toBe(130);
    const shown = terminal.shown().replaceAll('\r\u001b[K', '').replaceAll('\r\n', '');
    expect(shown).toMatch(/waiting \d+s at position 2 of 2 for q, held by a\\u001b\[2Jb\\u202e\\u009b2J/);
    expect(unprintableIn(shown)).toEqual([]);
  });

  test('by inspect on a terminal, with its own colours only', async () => {
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

describe('debug output has one line per event, with unprintable characters escaped', () => {
  const LINE = /^(\d{4}-\d\d-\d\dT[\d:.]+Z etcd-v2-lock:\w+ |etcd-v2-lock: )/;
  const LOUD = { DEBUG: 'etcd-v2-lock:*', DEBUG_COLORS: '0' };

  test.each<[string, string[], number]>([
    ['that waits', ['run', ALL, '--timeout', '1', '--', 'true'], 124],
    ['with an identity', ['run', 'free', '--identity', TEXTS[0] ?? '', '--', 'true'], 0],
  ])('of a client %s', async (_, args, code) => {
    const { url } = await serveOpenly();
    await raw('POST', `/_locks/${encodeURIComponent(ALL)}`, { value: ALL, ttl: '600' }, url);
    const ended = await runCli(args, { ETCD_ENDPOINTS: url, ...LOUD });
    expect(ended.code).toBe(code);
    expect(ended.stderr).toContain('etcd-v2-lock:client ');
    expect(ended.stderr).toContain('etcd-v2-lock:lock ');
    expectPrintable(ended.stderr, LINE);
  });

  test('of a client with failing servers', async () => {
    const { url } = await serve(answer(rawAnswer(500, failed(300, ALL, ALL))));
    const ended = await runCli(['run', 'queue', '--timeout', '1', '--', 'true'], { ETCD_ENDPOINTS: url, ...LOUD });
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
