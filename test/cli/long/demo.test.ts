// Whole demos.
import { once } from 'node:events';
import { expect, inject, onTestFinished, test } from 'vitest';
import { runCli, startCli } from '../../support/cli.ts';
import { raw } from '../../support/locks.ts';
import { childrenOf, untilGone } from '../../support/processes.ts';
import { startOnTerminal } from '../../support/terminal.ts';
import { until } from '../../support/until.ts';

const LANE = /^ {2}(\S+) +([ ·█▒✗!]+)$/gm;
const lanesOf = (text: string): { who: string; lane: string }[] =>
  [...text.matchAll(LANE)].map(([, who = '', lane = '']) => ({ who, lane }));

const widest = (text: string): number => Math.max(...text.split('\n').map((line) => [...line].length));

test.each([
  ['v2', ['node-1', 'node-2', 'node-3', 'python-etcd']],
  ['v3', ['node-1', 'node-2', 'node-3', 'node-4']],
])(
  'on %s, the demo shows three holds of each contender, one after another, and says what to try next',
  async (api, names) => {
    const { code, stdout, stderr } = await runCli(['demo', '--api', api]);
    expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
    const holds = [...stdout.matchAll(/^ +\d+\.\d\d s {2}(\S+) +holds the lock, token (\d+), waited \d+\.\d s$/gm)];
    expect(holds.map(([, who]) => who).sort()).toEqual(names.flatMap((name) => [name, name, name]));
    const tokens = holds.map(([, , token]) => Number(token));
    expect(tokens).toEqual([...tokens].sort((a, b) => a - b));
    const lanes = lanesOf(stdout);
    expect(lanes.map(({ who }) => who)).toEqual(names);
    // A short wait between two holds may be narrower than a column.
    for (const { lane } of lanes) expect(lane).toMatch(/^[ ·]*█[ ·█]*█$/);
    expect(stdout).toContain(
      '\n✔ 4 contenders, 12 holds, 0 overlaps, each token greater than the one before\nNext: npx etcd-v2-lock demo --crash\n',
    );
    expect(widest(stdout)).toBeLessThanOrEqual(80);
  },
);

test.each(['v2', 'v3'])(
  'on %s, "demo --crash" shows a holder that is killed, and that a late write is refused',
  async (api) => {
    const { code, stdout, stderr } = await runCli(['demo', '--crash', '--api', api]);
    expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
    const said = [...stdout.matchAll(/^ +\d+\.\d\d s {2}(\S+) +(.*)$/gm)].map(([, who = '', text = '']) => ({
      who,
      text,
    }));
    const [killed = '', stopped = '', third = ''] = new Set(said.map(({ who }) => who));
    const [, token] = /token (\d+)/.exec(said.find(({ who }) => who === third)?.text ?? '') ?? [];
    expect(said).toEqual([
      { who: killed, text: expect.stringMatching(/^holds the lock, token \d+$/) },
      { who: killed, text: expect.stringMatching(/^KILLED /) },
      { who: stopped, text: expect.stringMatching(/^holds the lock, token \d+, \d+\.\d s after the kill$/) },
      { who: stopped, text: expect.stringMatching(/^STOPPED /) },
      { who: third, text: expect.stringMatching(/^holds the lock, token \d+, \d+\.\d s after the stop$/) },
      { who: stopped, text: expect.stringMatching(/^CONTINUED /) },
      { who: stopped, text: `late write REFUSED by the fence: it has seen token ${token}` },
      { who: stopped, text: 'notices that it lost the lock' },
    ]);
    const lanes = new Map(lanesOf(stdout).map(({ who, lane }) => [who, lane]));
    expect(lanes.get(killed)).toMatch(/^·*█+✗$/);
    expect(lanes.get(stopped)).toMatch(/^ *·+█+▒+![▒!]*$/);
    expect(lanes.get(third)).toMatch(/^ *·+█+$/);
    expect(stdout).toContain(
      '\n✔ 3 contenders, 3 holds, 0 overlaps, the late write was refused\nNext: npx etcd-v2-lock ',
    );
  },
);

/** Starts a demo, which is killed after the test. Resolves when it has shown some text, to the demo and all that it has shown. */
async function demoThatShows(text: string, args: readonly string[], env?: Record<string, string>) {
  const demo = startCli([...args], env);
  onTestFinished(() => void demo.process.kill('SIGKILL'));
  let shown = '';
  demo.process.stdout.on('data', (chunk) => {
    shown += chunk;
  });
  await until(
    () => shown,
    (all) => all.includes(text),
  );
  return { ...demo, shown };
}

test('on a real etcd, the demo removes its lock at the end', async () => {
  const { code, stdout } = await runCli(['demo', '--crash'], { ETCD_ENDPOINTS: inject('etcd') });
  expect(code).toBe(0);
  const [, name] = /^Lock: (\S+)\. etcd: http/m.exec(stdout) ?? [];
  expect((await raw('GET', `/_locks/${name}`)).status).toBe(404);
});

test('on a real etcd, an interrupted demo removes its lock', async () => {
  const { shown, ...demo } = await demoThatShows('holds the lock', ['demo'], { ETCD_ENDPOINTS: inject('etcd') });
  demo.process.kill('SIGINT');
  expect(await demo.result).toMatchObject({ code: 130, stderr: '' });
  const [, name] = /^Lock: (\S+)\./m.exec(shown) ?? [];
  expect((await raw('GET', `/_locks/${name}`)).status).toBe(404);
});

test.each(['SIGINT', 'SIGKILL'] as const)(
  '%s leaves no process of the demo, not even a stopped one',
  async (signal) => {
    const demo = await demoThatShows('STOPPED', ['demo', '--crash']);
    const children = childrenOf(demo.process.pid ?? 0);
    expect(children).toHaveLength(2);
    demo.process.kill(signal);
    await Promise.all(children.map(untilGone));
    if (demo.process.exitCode === null && demo.process.signalCode === null) await once(demo.process, 'exit');
  },
);

const DEMO = [process.execPath, 'dist/cli/main.js', 'demo'];
/** Begins the escape sequences of a terminal. */
const ESCAPE = '\u001b\\[';
const CURSOR_UP = new RegExp(`\r${ESCAPE}\\d+A`);
const COLOUR = new RegExp(`${ESCAPE}\\d*m`);

test('on a terminal, the lanes stay below the lines and grow, in colours', async () => {
  const terminal = startOnTerminal(DEMO, { ETCD_ENDPOINTS: '', NO_COLOR: '' });
  expect(await terminal.ended).toBe(0);
  const shown = terminal.shown();
  expect(shown).toMatch(COLOUR);
  const [, ...updates] = shown.split(CURSOR_UP);
  expect(updates.length).toBeGreaterThan(20);
  expect(updates.at(-1)).toContain('\u001b[32m█');
  expect(updates.at(-1)).toContain('\u001b[32m✔ 4 contenders, 12 holds, 0 overlaps');
});

test('on a terminal with NO_COLOR, the lanes grow without colours', async () => {
  const terminal = startOnTerminal(DEMO, { ETCD_ENDPOINTS: '', NO_COLOR: '1' });
  await terminal.shows(/█████/);
  expect(terminal.shown()).toMatch(CURSOR_UP);
  expect(terminal.shown()).not.toMatch(COLOUR);
});

test('on a dumb terminal, the lanes are shown once, at the end', async () => {
  const terminal = startOnTerminal(DEMO, { ETCD_ENDPOINTS: '', TERM: 'dumb' });
  expect(await terminal.ended).toBe(0);
  expect(terminal.shown()).not.toContain('\u001b');
  expect(lanesOf(terminal.shown().replaceAll('\r', ''))).toHaveLength(4);
});
