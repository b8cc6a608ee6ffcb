import { expect, inject, onTestFinished, test } from 'vitest';
import { EtcdClient } from '../../src/index.ts';
import { formatRecord, type TickRecord } from '../../src/manager/once/record.ts';
import { freshName } from '../support/locks.ts';
import { ask, askJson } from '../support/queues.ts';

const APIS = ['v2', 'v3'] as const;
const HOUR = 3600_000;
/** The hour that has begun last. */
const lastHour = (): number => Math.floor(Date.now() / HOUR) * HOUR;

/** Writes the record of a job, or another text in its place. The end of the test removes it. */
async function record(api: 'v2' | 'v3', name: string, value: Partial<TickRecord> | string): Promise<void> {
  const client = new EtcdClient({ endpoints: inject('etcd'), api });
  const marker = client.store.marker(name);
  const whole: TickRecord = {
    at: lastHour(),
    state: 'ran',
    uuid: 'c'.repeat(32),
    label: 'web-1:17',
    ...(value as object),
  };
  const from = await marker.read({});
  await marker.advance({ from, to: typeof value === 'string' ? value : formatRecord(whole), ttl: 600 }, {});
  onTestFinished(async () => {
    const left = await marker.read({});
    if (left) await marker.remove(left, {});
    await client.close();
  });
}

test.each(APIS)('ticks shows the last tick of a job, its host and its state, on %s', async (api) => {
  const name = freshName();
  const at = lastHour() - 3 * HOUR;
  await record(api, name, { at, state: 'failed' });
  const { code, stdout, stderr } = await ask(['--api', api, 'ticks', name]);
  expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
  expect(stdout.split('\n').map((line) => line.split(/ {2,}/))).toEqual([
    ['JOB', 'LAST TICK', 'STATE', 'HOST', 'MISSED'],
    [name, new Date(at).toISOString(), 'failed', 'web-1:17', 'unknown'],
    [''],
  ]);
});

test.each(APIS)(
  'ticks counts the ticks after the last one, with the present one, and fails if there are any, on %s',
  async (api) => {
    const name = freshName();
    const at = lastHour() - 24 * 30 * HOUR;
    await record(api, name, { at });
    const { code, stdout, stderr } = await ask(['--api', api, 'ticks', name, '--once', '1h', '--json']);
    expect({ code, stderr }).toEqual({ code: 1, stderr: expect.stringMatching(/:00:00\.000Z did not run to its end/) });
    const [job] = JSON.parse(stdout) as { missed: number }[];
    // Unless an hour has begun in the meantime.
    expect([720, 721]).toContain(job?.missed);
    expect(job).toMatchObject({ name, lastTick: new Date(at).toISOString(), state: 'ran', host: 'web-1:17' });
  },
);

test.each([
  ['ran', 0],
  ['failed', 1],
  ['begun', 1],
] as const)(
  'if the job of the present tick has the state %j, ticks with the schedule exits with %i',
  async (state, code) => {
    const name = freshName();
    // Not an hour: the next one might begin during the test.
    const at = Math.floor(Date.now() / (366 * 24 * HOUR)) * 366 * 24 * HOUR;
    await record('v2', name, { at, state });
    expect(await ask(['ticks', name, '--once', '366d'])).toMatchObject({
      code,
      stdout: expect.stringContaining(state),
    });
  },
);

test('ticks without a name shows all jobs on v3, and asks for a name on v2', async () => {
  const names = [freshName(), `${freshName()}/a%2Fb`];
  for (const name of names) await record('v3', name, {});
  const shown = (await askJson<{ name: string }[]>(['--api', 'v3', 'ticks'])).map(({ name }) => name);
  expect(shown).toEqual(expect.arrayContaining(names));
  expect(await ask(['--api', 'v2', 'ticks'])).toMatchObject({
    code: 64,
    stderr: expect.stringContaining('give the name of a job'),
  });
});

test.each(APIS)('ticks reset removes the record, and shows it before, on %s', async (api) => {
  const name = freshName();
  await record(api, name, {});
  const { code, stdout, stderr } = await ask(['--api', api, 'ticks', 'reset', name]);
  expect({ code, stdout }).toEqual({ code: 0, stdout: expect.stringMatching(/web-1:17[\s\S]* removed\.\n$/) });
  expect(stderr).toContain('runs it, also if that tick has been run before');
  expect(await ask(['--api', api, 'ticks', name])).toMatchObject({ code: 1, stdout: '' });
  expect(await ask(['--api', api, 'ticks', 'reset', name])).toMatchObject({ code: 1, stdout: '' });
});

test.each(APIS)('ticks reset needs --force if the job may still run, on %s', async (api) => {
  const name = freshName();
  await record(api, name, { state: 'begun' });
  const refused = await ask(['--api', api, 'ticks', 'reset', name]);
  expect(refused).toMatchObject({ code: 1, stderr: expect.stringMatching(/may still run\. Use --force/) });
  expect(await askJson(['--api', api, 'ticks', name])).toMatchObject([{ state: 'begun' }]);
  expect(await ask(['--api', api, 'ticks', 'reset', name, '--force'])).toMatchObject({ code: 0 });
});

test('ticks shows an unreadable record as such, and reset removes it', async () => {
  const name = freshName();
  await record('v2', name, 'mine');
  expect(await ask(['ticks', name])).toMatchObject({ code: 0, stdout: expect.stringContaining('unreadable') });
  expect(await ask(['ticks', 'reset', name])).toMatchObject({ code: 0 });
});

test('a job with the name "reset" is shown like any other', async () => {
  await record('v2', 'reset', {});
  expect(await askJson(['ticks', 'reset'])).toMatchObject([{ name: 'reset', state: 'ran' }]);
});

test.each([
  [['ticks', 'a', 'b'], /only "reset" may stand before a name: got "a"/],
  [['ticks', 'a', '--time-zone', 'UTC'], /--time-zone needs --once/],
  [['ticks', 'a', '--once', 'soon'], /--once must be an interval .*got "soon"/],
  [['ticks', 'a//b'], /lock name must/],
])('%j is bad usage', async (args, words) => {
  expect(await ask(args)).toMatchObject({ code: 64, stdout: '', stderr: expect.stringMatching(words) });
});
