import { afterEach, expect, test, vi } from 'vitest';
import { runScript } from '../support/script.ts';

const HOUR = 3600;

afterEach(() => {
  vi.restoreAllMocks();
});

/** Returns what a new copy of the module warns about for these values of one option. */
async function warningsFor(...values: readonly number[]): Promise<string[]> {
  vi.resetModules();
  const { warnOfMilliseconds } = await import('../../src/base/checks.ts');
  const emitted = vi.spyOn(process, 'emitWarning').mockImplementation(() => {});
  for (const value of values) warnOfMilliseconds('ttl', value);
  return emitted.mock.calls.map(([message]) => String(message));
}

test.each([4000, 5000, 10_000, 30_000, 60_000, 90_000, 300_000, HOUR * 1000, 24 * HOUR * 1000])(
  '%i seconds look like milliseconds',
  async (value) => {
    expect(await warningsFor(value)).toEqual([expect.stringContaining(`did you mean ${value / 1000}?`)]);
  },
);

test.each([
  ['a second', 1],
  ['what would be milliseconds, but is less than an hour', 3000],
  ['an hour, the default of Lock', HOUR],
  ['an hour and a half', 1.5 * HOUR],
  ['two hours', 2 * HOUR],
  ['five hours', 5 * HOUR],
  ['ten hours', 10 * HOUR],
  ['a day', 24 * HOUR],
  ['a week', 7 * 24 * HOUR],
  ['the longest TTL', 2 ** 31],
])('%s does not look like milliseconds', async (_, value) => {
  expect(await warningsFor(value)).toEqual([]);
});

test('an option is warned about once', async () => {
  expect(await warningsFor(5000, 5000, 60_000)).toEqual(['ttl is in seconds: 5000 is 1.4 hours; did you mean 5?']);
});

/** Uses every option in seconds with a value that looks like milliseconds, each twice. */
const PROGRAM = `
  import { Lock, LockManager } from 'etcd-v2-lock';
  import { V2Client } from './dist/v2/client.js';
  import { EmbeddedEtcd } from 'etcd-v2-lock/server';
  const etcd = await EmbeddedEtcd.start();
  const client = new V2Client({ endpoints: etcd.url, readTimeout: 10_000 });
  for (const name of ['a', 'b']) {
    await new LockManager(client, { ttl: 30_000 }).request(name, { timeout: 5000 }, () => {});
    const lock = new Lock(client, name);
    await lock.acquire({ lockTtl: 60_000, timeout: 5000 });
    await lock.release();
    await client.set('/k', 'v', { ttl: 7000, attemptTimeout: 9000 });
  }
  await client.close({ timeout: 5000 });
  await etcd.stop();
`;

test('each option is warned about once in a process, with the code and how to silence it', async () => {
  const { code, stderr } = await runScript(PROGRAM);
  expect(code).toBe(0);
  const warnings = stderr.split('\n').flatMap((line) => line.split('[ETCD_LOCK_MILLISECONDS] ')[1] ?? []);
  expect(warnings).toEqual([
    'Warning: readTimeout is in seconds: 10000 is 2.8 hours; did you mean 10?',
    'Warning: ttl is in seconds: 30000 is 8.3 hours; did you mean 30?',
    'Warning: timeout is in seconds: 5000 is 1.4 hours; did you mean 5?',
    'Warning: lockTtl is in seconds: 60000 is 16.7 hours; did you mean 60?',
    'Warning: attemptTimeout is in seconds: 9000 is 2.5 hours; did you mean 9?',
  ]);
  expect(stderr).toContain('If 30000 seconds are right, run Node with --disable-warning=ETCD_LOCK_MILLISECONDS.');
});

test('--disable-warning silences the warnings', async () => {
  const { code, stderr } = await runScript(PROGRAM, { NODE_OPTIONS: '--disable-warning=ETCD_LOCK_MILLISECONDS' });
  expect(code).toBe(0);
  expect(stderr).toBe('');
});

test('durations in seconds that are usual warn about nothing', async () => {
  const { stderr } = await runScript(PROGRAM.replace(/\d+_?000\b/g, '7200'));
  expect(stderr).toBe('');
});
