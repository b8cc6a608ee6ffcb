// What `ls`, `inspect` and `watch` show on terminals of several widths. The server is fresh, so that its indices are known.
import { beforeAll, describe, expect, onTestFinished, test } from 'vitest';
import { EmbeddedEtcd } from '../../../src/server/index.ts';
import { runCli, startCli } from '../../support/cli.ts';
import { raw } from '../../support/locks.ts';
import { startOnTerminal } from '../../support/terminal.ts';
import { until } from '../../support/until.ts';

const MAIN = 'dist/cli/main.js';
const REPORT = 'reports/nightly-sales-europe';

let etcd: EmbeddedEtcd;
let first: string;

const enqueue = async (name: string, value: string, ttl = ''): Promise<string> =>
  (await raw('POST', `/_locks/${name}`, { value, ttl }, etcd.url)).body.node.key;

beforeAll(async () => {
  etcd = await EmbeddedEtcd.start();
  first = await enqueue(REPORT, 'id:reporting-worker-eu-west-1:9c2e41f2-2c5c-4a7e-9b0e-3f1f0d5b7a01');
  await enqueue(REPORT, '5d0c8b66-77a1-4c1a-8a52-0e6f4f4e2b02', '86400');
  await enqueue('import', 'shared:0b7a9d34-1f7e-4e0b-b7a5-6a1de0c4aa03');
  await enqueue('import', 'shared:f3a1c5d8-90e2-4d3b-8c77-2b9e1f6d5504');
  return () => etcd.stop();
});

/** The output with the remaining TTL and the time replaced. */
const stable = (text: string): string =>
  text.replace(/\b8[56]\d{3}\b/g, '86400').replace(/^\d\d:\d\d:\d\d\.\d{3}/gm, '12:34:56.789');

async function screen(columns: string, ...args: readonly string[]): Promise<string> {
  const { code, stdout, stderr } = await runCli(args, { ETCD_ENDPOINTS: etcd.url, COLUMNS: columns });
  expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
  return `\n${stable(stdout)}`;
}

async function watchScreen(columns: string): Promise<string> {
  const watch = startCli(['watch', REPORT], { ETCD_ENDPOINTS: etcd.url, COLUMNS: columns });
  onTestFinished(() => void watch.process.kill('SIGKILL'));
  let shown = '';
  watch.process.stdout.on('data', (chunk) => {
    shown += chunk;
  });
  await until(
    () => shown,
    (text) => text.endsWith('\n') && text.split('\n').length > 3,
  );
  return `\n${stable(shown)}`;
}

const widest = (text: string): number => Math.max(...text.split('\n').map(({ length }) => length));

describe('60 columns', () => {
  test('ls', async () => {
    const shown = await screen('60', 'ls');
    expect(shown).toMatchInlineSnapshot(`
      "
      NAME                          HOLDER          WAITERS  TTL
      import                        0b7a9d34-1f7e…  0        never
      reports/nightly-sales-europe  reporting-wor…  1        never
      "
    `);
    expect(widest(shown)).toBeLessThanOrEqual(60);
  });

  test('inspect', async () => {
    const shown = await screen('60', 'inspect', REPORT);
    expect(shown).toMatchInlineSnapshot(`
      "
      #  STATE  FOR      MODE       IDENTITY       TTL    KEY
      1  holds  unknown  exclusive  reporting-wo…  never  00000004
      2  waits  unknown  exclusive  -              86400  00000005
      /_locks/reports/nightly-sales-europe/00000000000000000004 never expires: it stays in the queue until it is released.
      "
    `);
    expect(widest(shown.replace(/^.* never expires.*$/gm, ''))).toBeLessThanOrEqual(60);
  });

  test('watch', async () => {
    const shown = await watchScreen('60');
    expect(shown).toMatchInlineSnapshot(`
      "
      TIME          EVENT       CLIENT               TTL
      12:34:56.789  holds       reporting-worker-e…  never expires
      12:34:56.789  waits       5d0c8b66-77a1-4c1a…  86400 s left
      "
    `);
    expect(widest(shown)).toBeLessThanOrEqual(60);
  });
});

describe('120 columns', () => {
  test('ls', async () => {
    expect(await screen('120', 'ls')).toMatchInlineSnapshot(`
      "
      NAME                          HOLDER                                    MODE       HELD FOR  WAITERS  WAITING FOR  TTL
      import                        0b7a9d34-1f7e-4e0b-b7a5-6a1de0c4aa03 an…  shared     unknown   0        -            never
      reports/nightly-sales-europe  reporting-worker-eu-west-1                exclusive  unknown   1        unknown      never
      "
    `);
  });

  test('inspect', async () => {
    const shown = await screen('120', 'inspect', REPORT);
    expect(shown).toMatchInlineSnapshot(`
      "
      #  STATE  FOR      MODE       IDENTITY                    LABEL  UUID                                  TTL    KEY
      1  holds  unknown  exclusive  reporting-worker-eu-west-1  -      9c2e41f2-2c5c-4a7e-9b0e-3f1f0d5b7a01  never  00000004
      2  waits  unknown  exclusive  -                           -      5d0c8b66-77a1-4c1a-8a52-0e6f4f4e2b02  86400  00000005
      /_locks/reports/nightly-sales-europe/00000000000000000004 never expires: it stays in the queue until it is released.
      "
    `);
    expect(widest(shown)).toBeLessThanOrEqual(120);
  });

  test('watch', async () => {
    expect(await watchScreen('120')).toMatchInlineSnapshot(`
      "
      TIME          INDEX  EVENT       KEY           MODE       CLIENT                                           TTL
      12:34:56.789  7      holds       …00000000004  exclusive  reporting-worker-eu-west-1 (9c2e41f2-2c5c-4a7e…  never expires
      12:34:56.789  7      waits       …00000000005  exclusive  5d0c8b66-77a1-4c1a-8a52-0e6f4f4e2b02             86400 s left
      "
    `);
  });
});

test('the output is complete if it is not on a terminal and COLUMNS is not set', async () => {
  const shown = await screen('', 'inspect', REPORT);
  expect(shown).toContain(first);
  expect(shown).not.toContain('…');
});

test('tables on a terminal fit its width if COLUMNS is not set', async () => {
  const terminal = startOnTerminal(['sh', '-c', `stty cols 60; exec '${process.execPath}' ${MAIN} ls`], {
    ETCD_ENDPOINTS: etcd.url,
    COLUMNS: '',
    NO_COLOR: '1',
  });
  expect(await terminal.ended).toBe(0);
  expect(`\n${terminal.shown().replaceAll('\r', '')}`).toBe(await screen('60', 'ls'));
});
