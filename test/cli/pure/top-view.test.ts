import { expect, test } from 'vitest';
import { LiveModel } from '../../../src/cli/live/model.ts';
import { TopView } from '../../../src/cli/top/view.ts';
import { parsed } from '../../../src/recipe/survey.ts';

const SIZE = { columns: 80, rows: 24 };
const START = Date.UTC(2026, 10, 28);

/** A model with locks of these names, each with a holder and so many waiters. */
function modelOf(waiters: Readonly<Record<string, number>>): LiveModel {
  const model = new LiveModel({ api: 'v2', prefix: '' });
  const queues = Object.entries(waiters).map(([name, count]) => ({
    name,
    path: `/_locks/${name}`,
    ignored: [],
    entries: Array.from({ length: count + 1 }, (_, at) =>
      parsed(name, {
        key: `/_locks/${name}/${String(at).padStart(20, '0')}`,
        value: `u${at}`,
        rank: BigInt(at),
        ttl: 30,
      }),
    ),
  }));
  model.listed({ queues, index: 1, clusterId: 'c' }, START);
  return model;
}

const shown = (view: TopView, size = SIZE, at = START): string[] =>
  view
    .lines(size, at)
    .map((line) =>
      typeof line === 'string' ? line : line.map((part) => (typeof part === 'string' ? part : part.text)).join(''),
    );

const names = (view: TopView): string[] =>
  shown(view)
    .slice(3, -1)
    .flatMap((line) => line.split(' ')[0] || []);

test('the list has as many lines as the terminal has rows, and no line is wider', () => {
  const view = new TopView(
    modelOf(Object.fromEntries(Array.from({ length: 100 }, (_, at) => [`lock-${at}`.repeat(9), at]))),
    'locks',
  );
  for (const [columns, rows] of [
    [80, 24],
    [200, 50],
    [20, 5],
    [10, 1],
  ] as const) {
    const lines = shown(view, { columns, rows });
    expect(lines).toHaveLength(rows);
    // The columns that are never left out need so much.
    for (const line of lines) expect(line.length).toBeLessThanOrEqual(Math.max(columns, 30));
  }
});

test('s sorts by the number of waiters, and by name', () => {
  const view = new TopView(modelOf({ b: 1, a: 0, c: 5 }), 'locks');
  view.press({ name: 's' });
  expect(names(view)).toEqual(['c', 'b', 'a']);
  view.press({ name: 's' });
  view.press({ name: 's' });
  expect(names(view)).toEqual(['a', 'b', 'c']);
});

test('the selected lock is opened, also if its place in the list has changed', () => {
  const model = modelOf({ a: 0, b: 0 });
  const view = new TopView(model, 'locks');
  shown(view);
  view.press({ name: 'down' });
  const entry = parsed('aa', { key: '/_locks/aa/00000000000000000009', value: 'u', rank: 9n, ttl: 30 });
  model.changed({ how: 'written', key: entry.key, entry, index: 2 }, START);
  view.press({ name: 'return' });
  expect(shown(view)[0]).toMatch(/^\/_locks\/b: 1 hold, 0 wait/);
  expect(view.shown).toEqual(['b']);
});

test('a lock that ends while it is open is shown as empty, with its history', () => {
  const model = modelOf({ a: 0 });
  const view = new TopView(model, 'locks');
  shown(view);
  view.press({ name: 'return' });
  model.changed({ how: 'expired', key: '/_locks/a/00000000000000000000', index: 2 }, START);
  const lines = shown(view);
  expect(view.shown).toEqual([]);
  expect(lines[2]).toBe('the queue is empty');
  expect(lines).toContainEqual(expect.stringMatching(/ expired {5}u0$/));
});

test('the list scrolls with the selection, and a long queue with the keys', () => {
  const view = new TopView(
    modelOf({ ...Object.fromEntries(Array.from({ length: 50 }, (_, at) => [`l${10 + at}`, 0])), z: 300 }),
    'locks',
  );
  for (let press = 0; press < 3; press += 1) view.press({ name: 's' });
  shown(view);
  for (let press = 0; press < 10; press += 1) view.press({ name: 'pagedown' });
  expect(names(view).at(-1)).toBe('z');
  view.press({ name: 'return' });
  shown(view);
  for (let press = 0; press < 100; press += 1) view.press({ name: 'pagedown' });
  expect(shown(view).join('\n')).toMatch(/^301 /m);
});

test('text from etcd that a terminal would interpret is escaped', () => {
  const view = new TopView(modelOf({ 'evil\u001b[2J\u202e': 1 }), 'locks');
  expect(shown(view).join('')).toContain(String.raw`evil\u001b[2J\u202e`);
  view.press({ name: 'return' });
  expect(shown(view).join('')).not.toContain('\u001b');
});

test('a TTL counts down, and is unknown once it has passed: the entry was renewed', () => {
  const view = new TopView(modelOf({ a: 0 }), 'locks');
  const ttlAfter = (seconds: number): string | undefined =>
    shown(view, SIZE, START + seconds * 1000)[3]
      ?.trim()
      .split(/ +/)
      .at(-1);
  expect([ttlAfter(0), ttlAfter(10), ttlAfter(40)]).toEqual(['30', '20', '?']);
});
