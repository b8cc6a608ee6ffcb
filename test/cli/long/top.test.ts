// What `top` shows in a terminal. The server is fresh, so that it has no other locks.
import { beforeEach, describe, expect, onTestFinished, test } from 'vitest';
import { EmbeddedEtcd } from '../../../src/server/index.ts';
import { runCli, startCli } from '../../support/cli.ts';
import { raw } from '../../support/locks.ts';
import { ask } from '../../support/queues.ts';
import { startInTmux, type Tmux } from '../../support/tmux.ts';
import { until } from '../../support/until.ts';

const MAIN = `${process.cwd()}/dist/cli/main.js`;

let etcd: EmbeddedEtcd;
let keys: string[];

const enqueue = async (name: string, value: string, ttl = '600'): Promise<string> =>
  (await raw('POST', `/_locks/${name}`, { value, ttl }, etcd.url)).body.node.key;

beforeEach(async () => {
  etcd = await EmbeddedEtcd.start();
  onTestFinished(() => etcd.stop());
  keys = [];
  for (const n of [1, 2, 3])
    keys.push(await enqueue('reports/nightly', `${'0123456789abcdef0123456789abcde'}${n}@web-${n}%3A17`));
  await enqueue('import', 'id:pod-1:u1', '');
  await enqueue('encoder', 'limit:2:0123456789abcdef0123456789abcdef', '');
});

const startTop = (columns: number, rows: number): Promise<Tmux> =>
  startInTmux(`ETCD_ENDPOINTS=${etcd.url} '${process.execPath}' '${MAIN}' top; echo ended $?; sleep 60`, columns, rows);

/** The screen with what differs from run to run replaced. */
const stable = (screen: string): string =>
  `\n${screen
    .replace(/\d\d:\d\d:\d\d/g, '12:34:56')
    .replace(/(≥?)\b\d+s\b( *)/g, '$17s$2')
    .replace(/\b(?:5\d\d|600)\b/g, '600')
    .trimEnd()}\n`;

describe('80 columns and 24 rows', () => {
  test('the list of all locks, the longest wait first', async () => {
    const top = await startTop(80, 24);
    const shown = await top.shows(/encoder/);
    expect(stable(shown)).toMatchInlineSnapshot(`
      "
      locks on etcd v2: 3, 1 with waiters, by longest wait                    12:34:56

      NAME             HOLDER                    HELD FOR  WAITERS  WAITING FOR  TTL
      reports/nightly  web-1:17                  ≥7s       2        ≥7s          600
      encoder          0123456789abcdef0123456…  ≥7s       0        -            never
      import           pod-1                     ≥7s       0        -            never

















      up/down: select  enter: open  /: search  s: sort  q: quit
      "
    `);
    expect(shown.split('\n')).toHaveLength(25);
  });

  test('an open lock: its queue, whom each entry waits for, and what has happened', async () => {
    const top = await startTop(80, 24);
    await top.shows(/encoder/);
    await top.press('Enter');
    await top.shows(/WAITS FOR/);
    await raw('DELETE', keys[0] ?? '', undefined, etcd.url);
    expect(stable(await top.shows(/acquired/))).toMatchInlineSnapshot(`
      "
      /_locks/reports/nightly: 1 hold, 1 wait                                 12:34:56

      #  STATE  FOR  MODE       CLIENT           KIND          WAITS FOR  TTL  RENEWED
      1  holds  7s   exclusive  web-2:17 (0123…  this package  -          600  -
      2  waits  ≥7s  exclusive  web-3:17 (0123…  this package  web-2:17   600  -

      SINCE TOP STARTED
      12:34:56  released    web-1:17 (0123456789abcdef0123456789abcde1)
      12:34:56  acquired    web-2:17 (0123456789abcdef0123456789abcde2)














      up/down: scroll  escape: back  q: quit
      "
    `);
  });
});

test('200 columns and 50 rows show all columns in full', async () => {
  const top = await startTop(200, 50);
  expect(
    stable(await top.shows(/encoder/))
      .split('\n')
      .slice(0, 8)
      .join('\n'),
  ).toMatchInlineSnapshot(`
    "
    locks on etcd v2: 3, 1 with waiters, by longest wait                                                                                                                                            12:34:56

    NAME             HOLDER                            KIND          HELD FOR  WAITERS  WAITING FOR  TTL
    reports/nightly  web-1:17                          this package  ≥7s       2        ≥7s          600
    encoder          0123456789abcdef0123456789abcdef  this package  ≥7s       0        -            never
    import           pod-1                             this package  ≥7s       0        -            never
    "
  `);
  await top.press('Enter');
  expect(
    stable(await top.shows(/WAITS FOR/))
      .split('\n')
      .slice(0, 8)
      .join('\n'),
  ).toMatchInlineSnapshot(`
    "
    /_locks/reports/nightly: 1 hold, 2 wait                                                                                                                                                         12:34:56

    #  STATE  FOR  MODE       CLIENT                                       KIND          WAITS FOR  TTL  RENEWED
    1  holds  ≥7s  exclusive  web-1:17 (0123456789abcdef0123456789abcde1)  this package  -          600  -
    2  waits  ≥7s  exclusive  web-2:17 (0123456789abcdef0123456789abcde2)  this package  web-1:17   600  -
    3  waits  ≥7s  exclusive  web-3:17 (0123456789abcdef0123456789abcde3)  this package  web-2:17   600  -
    "
  `);
});

test('the screen follows the size of the terminal while top runs', async () => {
  const top = await startTop(80, 24);
  await top.shows(/encoder/);
  for (const [columns, rows] of [
    [200, 50],
    [40, 10],
    [80, 24],
  ] as const) {
    await top.resize(columns, rows);
    const lines = await until(
      async () => (await top.screen()).split('\n'),
      (shown) => shown[0]?.length === columns && shown[rows - 1]?.startsWith('up/down') === true,
    );
    expect(lines[0]).toMatch(/ \d\d:\d\d:\d\d$/);
    expect(lines.slice(0, 4).join('\n')).toContain('NAME');
  }
});

test('keys search, sort, select and go back, and q leaves the screen as it was', async () => {
  const top = await startTop(80, 24);
  await top.shows(/encoder/);
  await top.press('/', 'i', 'm', 'p');
  expect(await top.shows(/search: imp_/)).not.toContain('encoder');
  await top.press('Enter', 'Enter');
  await top.shows(/^\/_locks\/import: 1 hold, 0 wait/);
  await top.press('Escape');
  await top.shows(/search: imp\n/);
  await top.press('Escape');
  await top.shows(/encoder/);
  await top.press('s', 's', 's');
  const sorted = await top.shows(/by name/);
  expect(sorted.indexOf('encoder')).toBeLessThan(sorted.indexOf('reports'));
  await top.press('q');
  expect(await top.shows(/ended/)).toMatch(/^ended 0\n\s*$/);
});

test('an outage is shown with its time, and ends when etcd answers again', async () => {
  const top = await startTop(80, 24);
  await top.shows(/encoder/);
  const { port } = new URL(etcd.url);
  await etcd.stop();
  expect(await top.shows(/not seen since/)).toContain('reports/nightly');
  etcd = await EmbeddedEtcd.start({ port: Number(port) });
  onTestFinished(() => etcd.stop());
  await enqueue('after-the-outage', 'u1');
  expect(await top.shows(/after-the-outage/)).not.toContain('not seen');
});

test('off a terminal, top prints the entries and one line per event', async () => {
  const top = startCli(['top'], { ETCD_ENDPOINTS: etcd.url });
  onTestFinished(() => void top.process.kill('SIGKILL'));
  let shown = '';
  top.process.stdout.on('data', (text) => {
    shown += text;
  });
  const lines = (count: number): Promise<string[]> =>
    until(
      () => shown.split('\n').slice(0, -1),
      ({ length }) => length >= count,
    );
  await lines(6);
  await raw('DELETE', keys[0] ?? '', undefined, etcd.url);
  const events = (await lines(8)).map((line) => line.split(/ {2,}/).slice(1, 4).join(' ').replace(/ \(.*/, ''));
  expect(events[0]).toBe('EVENT NAME CLIENT');
  expect(events.slice(1, 6).sort()).toEqual([
    'holds encoder 0123456789abcdef0123456789abcdef',
    'holds import pod-1',
    'holds reports/nightly web-1:17',
    'waits reports/nightly web-2:17',
    'waits reports/nightly web-3:17',
  ]);
  expect(events.slice(6)).toEqual(['released reports/nightly web-1:17', 'acquired reports/nightly web-2:17']);
  top.process.kill('SIGINT');
  expect(await top.result).toMatchObject({ code: 130, stderr: '' });
});

test('top exits at once if etcd cannot be reached, or the prefix is invalid', async () => {
  expect(await ask(['top'], 'http://127.0.0.1:1')).toMatchObject({ code: 69, stdout: '' });
  expect(await runCli(['top', 'a//b'])).toMatchObject({ code: 64, stdout: '' });
});
