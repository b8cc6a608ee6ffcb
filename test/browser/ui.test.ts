// The page of ui in a real browser, with real clients.
import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import type { Locator, Page } from 'playwright-core';
import { describe, expect, inject, onTestFinished, test } from 'vitest';
import { startPython } from '../../compat/python.ts';
import { ignore } from '../../src/base/cancellation.ts';
import { OnDemand } from '../../src/cli/ui/on-demand.ts';
import { readPage } from '../../src/cli/ui/page-files.ts';
import type { ShownChecks, ShownMove } from '../../src/cli/ui/shapes.ts';
import { EtcdClient, LockManager } from '../../src/index.ts';
import { formatRecord } from '../../src/manager/once/record.ts';
import { useBridges } from '../support/bridge-process.ts';
import { lockByEtcdctl } from '../support/etcdctl.mjs';
import { expectPrintable, HOSTILE } from '../support/hostile.ts';
import { useProxy } from '../support/locks.ts';
import { useLockName } from '../support/queues.ts';
import { entryOf, remove, startUi, type Ui, useUi, write } from '../support/ui.ts';
import { openPage } from './browser.ts';

const AXE = readFileSync(createRequire(import.meta.url).resolve('axe-core'), 'utf8');

/** Expects that axe finds nothing. */
async function expectAccessible(page: Page): Promise<void> {
  // Not a script of the page, so its policy does not forbid it.
  await page.evaluate(AXE);
  const { violations } = await page.evaluate(() =>
    (globalThis as unknown as { axe: { run(): Promise<{ violations: unknown[] }> } }).axe.run(),
  );
  expect(violations).toEqual([]);
}

/** Measures how soon the page shows changes, in milliseconds. On a busy machine, one of them may be late. */
function useDelays() {
  const delays: number[] = [];
  const soon = async (shown: Promise<unknown>): Promise<void> => {
    const since = performance.now();
    await shown;
    delays.push(performance.now() - since);
  };
  const median = (): number => delays.toSorted((one, other) => one - other)[(delays.length - 1) >> 1] ?? Number.NaN;
  return { soon, median };
}

const appears = (locator: Locator): Promise<void> => locator.waitFor();

function useLocks(api: 'v2' | 'v3'): LockManager {
  const client = new EtcdClient({ endpoints: inject('etcd'), api });
  onTestFinished(() => client.close());
  return new LockManager(client, { ttl: 30, label: 'web-1:17' });
}

/** Serves a model in memory with the real page. */
const useMemory = (options: Parameters<typeof useUi>[0] = {}): Promise<Ui> => useUi({ page: readPage(), ...options });

/** Reports as the server makes them. */
const CHECKS: ShownChecks = {
  madeAt: Date.UTC(2026, 10, 28, 12),
  took: 1.23,
  stores: [
    {
      api: 'v2',
      findings: [
        {
          level: 'ok',
          about: 'reachable',
          endpoint: 'http://10.0.0.1:2379',
          text: 'reachable: etcd 3.4.23',
          advice: null,
        },
        {
          level: 'fail',
          about: 'health',
          endpoint: 'http://10.0.0.2:2379',
          text: 'no quorum',
          advice: 'start members',
        },
        {
          level: 'warn',
          about: 'stores',
          endpoint: null,
          text: `locks in both stores: ${'x'.repeat(300)}`,
          advice: 'read <b>',
        },
      ],
    },
  ],
};
const MOVE: ShownMove = {
  madeAt: Date.UTC(2026, 10, 28, 12),
  took: 5.1,
  clients: {
    v2: { count: 1, uses: [{ lock: 'jobs/nightly-report', client: 'web-1:17' }] },
    both: { count: 0, uses: [] },
    either: { count: 0, uses: [] },
    v3: { count: 1, uses: [{ lock: 'x'.repeat(200), client: 'web-2:4711' }] },
  },
  findings: [
    { level: 'warn', about: 'moving', endpoint: null, text: 'step 1 can begin or continue', advice: 'restart them' },
  ],
};

const reportsOf = (checks: () => object, move: () => object = () => MOVE) => ({
  checks: new OnDemand(async () => JSON.stringify(checks()), 0),
  move: new OnDemand(async () => JSON.stringify(move()), 0),
});

/** Fills the model with locks as people have them. */
function fillSome(ui: Ui): void {
  write(ui, entryOf('jobs/nightly-report', 1, 'c0a8a1d2b3c4d5e6f708192a3b4c5d6e', 60));
  write(ui, entryOf('jobs/nightly-report', 2, `id:worker-2:${'1'.repeat(32)}@web-2%3A4711`, 30));
  write(ui, entryOf('jobs/nightly-report', 3, `shared:${'2'.repeat(32)}@cron%40db-3`, 30));
  write(ui, entryOf('orders/import', 4, `limit:2:${'3'.repeat(32)}@web-1%3A17`));
  write(ui, entryOf('elections/api', 5, `${'4'.repeat(32)}@api-1@http%3A%2F%2F10.0.0.7%3A8080`, 20));
  write(ui, entryOf('cache/rebuild', 6, '5'.repeat(32), 12));
}

test('a queue of etcdctl, python-etcd behind a bridge and this package is seen to change within a second', async () => {
  const name = useLockName();
  const { soon, median } = useDelays();
  const { line: url } = await startUi(['--api', 'v3', name]);
  const [page, list] = [await openPage(`${url}/#/lock/${name}`), await openPage(url)];
  await appears(page.getByText('The queue is empty'));
  const entry = (position: number, ...texts: readonly string[]): Locator =>
    texts.reduce((row, text) => row.filter({ hasText: text }), page.locator('.entries tbody tr').nth(position - 1));

  const etcdctl = lockByEtcdctl(`/_locks/${name}`, { endpoints: [inject('etcd')], ttl: 30 });
  onTestFinished(() => etcdctl.kill());
  await etcdctl.held;
  await soon(appears(entry(1, 'Go', 'holds')));
  await soon(appears(list.getByRole('row').filter({ hasText: name }).filter({ hasText: 'Go' })));

  const [bridge] = await useBridges([[inject('etcd')]]);
  const python = await startPython(bridge?.url ?? '');
  onTestFinished(() => python.kill());
  const lock = await python.lock(name);
  const acquired = lock.hold({ lockTtl: 30 });
  acquired.catch(ignore); // if the test fails before
  await appears(entry(2, 'python-etcd', 'waits'));
  const waiting = useLocks('v3').acquire(name);
  await appears(entry(3, 'this package', 'web-1:17', 'waits'));
  await soon(appears(list.getByRole('row').filter({ hasText: 'Go' }).getByRole('cell', { name: '2', exact: true })));

  await etcdctl.release();
  await acquired;
  await soon(appears(entry(1, 'python-etcd', 'holds')));
  await lock.release();
  const held = await waiting;
  await soon(appears(entry(1, 'this package', 'holds')));
  await held.release();
  await soon(appears(page.getByText('The queue is empty')));
  await soon(appears(list.getByText('No lock is held.')));
  expect(median()).toBeLessThan(1000);
  const history = await page.locator('.history .what').allTextContents();
  expect(history.filter((what) => what === 'acquired')).toHaveLength(3);
});

test('python-etcd on v2 and this package behind it are seen to change within a second', async () => {
  const name = useLockName();
  const { soon, median } = useDelays();
  const { line: url } = await startUi([name]);
  const page = await openPage(`${url}/#/lock/${name}`);
  await appears(page.getByText('The queue is empty'));
  const python = await startPython(inject('etcd'));
  onTestFinished(() => python.kill());
  const lock = await python.lock(name);
  await lock.hold({ lockTtl: 600 });
  const rows = page.locator('.entries tbody tr');
  await soon(appears(rows.nth(0).filter({ hasText: 'python-etcd' }).filter({ hasText: 'holds' })));
  const waiting = useLocks('v2').acquire(name);
  await appears(rows.nth(1).filter({ hasText: 'this package' }).filter({ hasText: 'waits' }));
  await lock.release();
  const held = await waiting;
  await soon(appears(rows.nth(0).filter({ hasText: 'this package' }).filter({ hasText: 'holds' })));
  expect(median()).toBeLessThan(1000);
  await held.release();
});

test('a page left open in an outage of etcd says so, and continues by itself', async () => {
  const name = useLockName();
  const proxy = await useProxy();
  const { line: url } = await startUi([name], proxy.url);
  const page = await openPage(url);
  await appears(page.getByText('No lock is held.'));
  const recover = proxy.intercept(() => ({ refuse: true }));
  await appears(page.getByRole('alert').filter({ hasText: /etcd v2 was last seen at \d\d:\d\d:\d\d/ }));
  const held = await useLocks('v2').acquire(name);
  recover();
  await appears(page.getByRole('link', { name }));
  await page.getByText('was last seen').waitFor({ state: 'detached' });
  await held.release();
});

test('a page whose server has ended says so, and continues when there is one again', async () => {
  const ui = await startUi([]);
  const page = await openPage(ui.line, {}, /Failed to load resource: net::ERR_/);
  await appears(page.getByRole('heading', { name: 'Locks on etcd v2' }));
  ui.process.kill('SIGTERM');
  await appears(page.getByText(/The server of this page has not answered since/));
  await expectAccessible(page);
  await startUi(['--listen', new URL(ui.line).host]);
  await page.getByText('has not answered').waitFor({ state: 'detached' });
});

test('a browser with the token sees the page, and the token leaves the address bar', async () => {
  const token = 'a-token-of+the/tests=';
  const { line: url } = await startUi(['--token', token]);
  const page = await openPage(`${url}/?token=${token}`);
  await appears(page.getByRole('heading', { name: 'Locks on etcd v2' }));
  expect(page.url()).toBe(`${url}/`);
  expect(await page.evaluate(() => document.cookie)).toBe('');
});

test('what clients write is text, whatever it is', async () => {
  const ui = await useMemory();
  const markup = '<img src=x onerror="document.title=1"><script>document.title=2</script>';
  const texts = [...Object.values(HOSTILE), markup, 'javascript:alert(1)', '\u202eeman', 'x'.repeat(2 ** 20)];
  texts.forEach((text, rank) => {
    const value = `id:${encodeURIComponent(text)}:${'6'.repeat(32)}@${encodeURIComponent(text)}@${encodeURIComponent(text)}`;
    write(ui, entryOf(`${rank}-${text}`, rank, value, 30));
    write(ui, entryOf('open', 100 + rank, value, 30));
  });
  const list = await openPage(ui.url);
  await list.locator('tbody tr').nth(texts.length).waitFor();
  const open = await openPage(`${ui.url}/#/lock/open`);
  await open
    .locator('tbody tr')
    .nth(texts.length - 1)
    .waitFor();
  for (const page of [list, open]) {
    expectPrintable((await page.locator('body').innerText()).replaceAll(/[\n\t]/g, ' '));
    expect(await page.locator('#page :is(img, script, style, iframe)').count()).toBe(0);
    expect(await page.title()).toMatch(/Locks$/);
  }
  // Its page can be opened, and its name is the same there.
  await list.getByRole('link', { name: markup }).click();
  await appears(list.getByRole('heading', { level: 1 }).filter({ hasText: markup }));
});

describe('with the keyboard alone', () => {
  test('a lock is found, opened and left', async () => {
    const ui = await useMemory();
    fillSome(ui);
    const page = await openPage(ui.url);
    await appears(page.getByRole('link', { name: 'orders/import' }));
    const focused = () => page.evaluate(() => document.activeElement?.textContent || document.activeElement?.tagName);
    // Past the views.
    for (let presses = 0; presses < 5; presses += 1) await page.keyboard.press('Tab');
    await page.keyboard.type('ORDERS');
    await page.getByRole('link', { name: 'jobs/nightly-report' }).waitFor({ state: 'detached' });
    expect(await page.getByRole('status').textContent()).toBe('1 of 4 locks, 0 with waiters');
    await page.keyboard.press('Tab');
    expect(await page.evaluate(() => document.activeElement?.tagName)).toBe('SELECT');
    await page.keyboard.press('Tab');
    await page.keyboard.press('Enter');
    await appears(page.getByRole('heading', { name: 'Lock orders/import' }));
    await expect.poll(focused).toBe('Lock orders/import');
    await page.keyboard.press('Escape');
    await appears(page.getByRole('heading', { name: 'Locks on etcd v2' }));
    await expect.poll(focused).toBe('Locks on etcd v2');
  });

  test('further rows are shown', async () => {
    const ui = await useMemory();
    for (let at = 0; at < 150; at += 1) write(ui, entryOf(`lock-${at}`, 1, 'u1', 30));
    const page = await openPage(ui.url);
    await page.getByRole('button', { name: 'Show 50 more of 50' }).press('Enter');
    await page.locator('tbody tr').nth(149).waitFor();
  });
});

test('the list is sorted by trouble: never expires, longest wait, and then the others', async () => {
  const ui = await useMemory();
  fillSome(ui);
  write(ui, entryOf('orders/import', 7, 'u7', 30));
  const page = await openPage(ui.url);
  const names = () => page.locator('tbody tr th a').allTextContents();
  await expect.poll(names).toEqual(['orders/import', 'jobs/nightly-report', 'cache/rebuild', 'elections/api']);
  await page.getByLabel('Sort by').selectOption('waiters');
  await expect.poll(names).toEqual(['jobs/nightly-report', 'orders/import', 'cache/rebuild', 'elections/api']);
  await page.getByLabel('Sort by').selectOption('name');
  await expect.poll(names).toEqual(['cache/rebuild', 'elections/api', 'jobs/nightly-report', 'orders/import']);
});

describe('the timeline of a lock', () => {
  test('shows how each client has waited, held and ended, and says so in words', async () => {
    const ui = await useMemory();
    const [held, waiting] = [entryOf('x', 1, `${'1'.repeat(32)}@web-1`), entryOf('x', 2, `${'2'.repeat(32)}@web-2`)];
    const page = await openPage(`${ui.url}/#/lock/x`);
    await appears(page.getByText('The queue is empty'));
    expect(await page.getByRole('img').count()).toBe(0);
    write(ui, held);
    write(ui, waiting);
    await appears(
      page.getByRole('img', { name: /^Timeline of 2 clients .* on etcd v2, 1 hold and 1 wait\. 0 entries/ }),
    );
    const timeline = page.locator('.timeline');
    expect(await timeline.locator('.row-name').allTextContents()).toEqual(['web-1', 'web-2']);
    expect([await timeline.locator('.bar-holds').count(), await timeline.locator('.bar-waits').count()]).toEqual([
      1, 1,
    ]);
    ui.model.changed({ how: 'expired', key: held.key, index: 3 }, Date.now());
    remove(ui, waiting);
    await appears(page.getByRole('img', { name: /: nobody holds the lock now\. 1 entries have expired or were lost/ }));
    expect([await timeline.locator('.bar-holds').count(), await timeline.locator('.sign-bad').count()]).toEqual([2, 1]);
    await appears(page.locator('.event-expired').getByText('web-1'));
  });

  test('has at most 20 rows, and nothing in it moves by itself', async () => {
    const ui = await useMemory();
    for (let at = 0; at < 30; at += 1) write(ui, entryOf('x', at + 1, `${'1'.repeat(32)}@web-${at}`));
    const page = await openPage(`${ui.url}/#/lock/x`);
    await page.emulateMedia({ reducedMotion: 'reduce' });
    await appears(page.getByText('10 further clients are not drawn.'));
    expect(await page.locator('.row-name').count()).toBe(20);
    const moving = await page.evaluate(() =>
      [...document.querySelectorAll('.timeline *')].filter((each) => {
        const { transitionDuration, animationName } = getComputedStyle(each);
        return transitionDuration !== '0s' || animationName !== 'none';
      }),
    );
    expect(moving).toEqual([]);
    await page.getByLabel('Show').selectOption('the last minute');
    expect(await page.locator('.row-name').count()).toBe(20);
  });

  test('ends where etcd was last seen', async () => {
    const ui = await useMemory();
    write(ui, entryOf('x', 1, `${'1'.repeat(32)}@web-1`));
    const page = await openPage(`${ui.url}/#/lock/x`);
    const title = page.getByRole('img', { name: /^Timeline/ });
    await appears(title);
    ui.model.failed('connect ECONNREFUSED');
    ui.viewers.changed();
    await appears(page.getByText('was last seen'));
    const axis = () => page.locator('.axis').allTextContents();
    const before = await axis();
    await page.waitForTimeout(2100);
    expect(await axis()).toEqual(before);
  });
});

describe('with --allow-release and the keyboard alone', () => {
  const [holder, waiter] = [entryOf('x', 1, `${'1'.repeat(32)}@web-1`, 30), entryOf('x', 2, 'u2', 30)];

  async function useQueue(options: Parameters<typeof useUi>[0] = {}): Promise<{ ui: Ui; page: Page }> {
    const ui = await useMemory({ mayRelease: true, ...options });
    write(ui, holder);
    write(ui, waiter);
    return { ui, page: await openPage(`${ui.url}/#/lock/x`, {}, /^Failed to load resource: .* status of 4\d\d/) };
  }

  const focused = (page: Page) => () => page.evaluate(() => document.activeElement?.textContent);

  test('a waiter is released after one question', async () => {
    const { ui, page } = await useQueue();
    await page.getByRole('button', { name: 'Release u2' }).press('Enter');
    const dialog = page.getByRole('dialog', { name: 'Release this entry?' });
    await appears(dialog.getByText(`${waiter.key}: exclusive, u2, 30 s left`));
    await appears(dialog.getByText('A removed waiter of a LockManager'));
    expect(await dialog.getByRole('checkbox').count()).toBe(0);
    await expectAccessible(page);
    await dialog.getByRole('button', { name: 'Release', disabled: false }).press('Enter');
    await appears(page.getByRole('status').getByText(`${waiter.key} removed.`));
    expect(ui.removed).toEqual([waiter.key]);
    await page.locator('.entries tbody tr').nth(1).waitFor({ state: 'detached' });
    await expect.poll(focused(page)).toBe('Lock x');
    await expectAccessible(page);
  });

  test('a holder needs a second confirmation, and Escape or "Cancel" removes nothing', async () => {
    const { ui, page } = await useQueue();
    const button = page.getByRole('button', { name: 'Release web-1' });
    const dialog = page.getByRole('dialog');
    for (const leave of [
      () => page.keyboard.press('Escape'),
      () => dialog.getByRole('button', { name: 'Cancel' }).press('Enter'),
    ]) {
      await button.press('Enter');
      await appears(dialog.getByText('the lock passes to u2 at once'));
      await leave();
      await dialog.waitFor({ state: 'detached' });
      await expect.poll(focused(page)).toBe('Release');
      expect(await page.getByRole('heading', { level: 1 }).textContent()).toBe('Lock x');
    }
    await button.press('Enter');
    const confirm = dialog.getByRole('button', { name: 'Release' });
    await appears(dialog.getByText('may work at the same time'));
    expect(await confirm.isDisabled()).toBe(true);
    await expectAccessible(page);
    await dialog.getByRole('checkbox', { name: 'Remove it although it holds the lock' }).press('Space');
    expect(ui.removed).toEqual([]);
    await confirm.press('Enter');
    await appears(page.getByRole('status').getByText(`${holder.key} removed.`));
    expect(ui.removed).toEqual([holder.key]);
  });

  test('what was not removed is said, with the reason', async () => {
    const { ui, page } = await useQueue({ removal: 'changed' });
    await page.getByRole('button', { name: 'Release u2' }).press('Enter');
    await page.getByRole('dialog').getByRole('button', { name: 'Release', disabled: false }).press('Enter');
    await appears(page.getByRole('status').getByText('was not removed: its value has changed since it was read'));
    expect(ui.removed).toEqual([]);
  });

  test('an entry that has gone before the question is reported', async () => {
    const { ui, page } = await useQueue();
    await page.route('**/api/release?*', async (route) => {
      remove(ui, waiter);
      await route.continue();
    });
    await page.getByRole('button', { name: 'Release u2' }).press('Enter');
    await appears(page.getByRole('status').getByText('the entry is no longer in the queue'));
    expect(await page.getByRole('dialog').count()).toBe(0);
  });

  test.each([360, 2560])('the question fits a width of %d', async (width) => {
    const ui = await useMemory({ mayRelease: true });
    write(ui, entryOf('x', 1, `id:${'i'.repeat(300)}:${'u'.repeat(300)}`, 30));
    const page = await openPage(`${ui.url}/#/lock/x`, { width, scheme: 'dark' });
    await page.getByRole('button', { name: /^Release/ }).press('Enter');
    await appears(page.getByText('holds x. After its removal, the lock is free'));
    await expectAccessible(page);
    expect(await page.evaluate(() => document.documentElement.scrollWidth > window.innerWidth)).toBe(false);
  });
});

test('elections are shown with the leader, what it publishes, and the number of candidates, as they change', async () => {
  const ui = await useMemory();
  fillSome(ui);
  const page = await openPage(ui.url);
  await page.getByRole('link', { name: 'Elections', exact: true }).click();
  await appears(page.getByRole('heading', { name: 'Elections' }));
  const row = page.locator('.elections tbody tr');
  await appears(
    row.filter({ hasText: 'elections/api' }).filter({ hasText: 'api-1' }).filter({ hasText: 'http://10.0.0.7:8080' }),
  );
  expect(await row.count()).toBe(1);
  write(ui, entryOf('elections/api', 6, `${'5'.repeat(32)}@api-2@http%3A%2F%2F10.0.0.8`, 20));
  await appears(row.getByRole('cell', { name: '2', exact: true }));
  remove(ui, entryOf('elections/api', 5, '', 20));
  await appears(row.filter({ hasText: 'api-2' }).filter({ hasText: 'http://10.0.0.8' }));
  await expectAccessible(page);
  await row.getByRole('link', { name: 'elections/api' }).click();
  await appears(page.getByRole('heading', { name: 'Lock elections/api' }));
});

test('the findings of doctor are shown with their advice, and made again with the keyboard', async () => {
  let runs = 0;
  const ui = await useMemory({
    reports: reportsOf(() => {
      runs += 1;
      return { ...CHECKS, took: runs };
    }),
  });
  const page = await openPage(ui.url);
  await page.getByRole('link', { name: 'Checks' }).press('Enter');
  await expect.poll(() => page.title()).toBe('Checks – Locks');
  await appears(page.getByRole('status').getByText(/^Checked at \d\d:00:00, in 1\.0 s$/));
  const finding = page.locator('section[aria-label="http://10.0.0.2:2379"] .finding-fail');
  await appears(finding.getByText('no quorum'));
  await appears(finding.getByText('start members'));
  await appears(page.locator('section[aria-label="cluster"]').getByText('read <b>'));
  await page.getByRole('button', { name: 'Check again' }).press('Enter');
  await appears(page.getByRole('status').getByText(/in 2\.0 s$/));
});

test('the move from v2 to v3 is watched when somebody opens its view, and the clients lead to their locks', async () => {
  const name = useLockName();
  const held = await useLocks('v2').acquire(name);
  const { line: url } = await startUi(['--api', 'both']);
  const page = await openPage(url);
  await page.getByRole('link', { name: 'Move' }).click();
  await appears(page.getByRole('status').getByText('watching both stores, for 5 to 25 seconds'));
  await appears(page.getByRole('status').getByText(/^Checked at/));
  await appears(page.locator('.finding').first());
  await page.getByRole('link', { name }).click();
  await appears(page.getByRole('heading', { name: `Lock ${name}` }));
  await held.release();
});

test('a report that cannot be made says why', async () => {
  const ui = await useMemory({ reports: { checks: 'no checks with a prefix', move: 'no move' } });
  const page = await openPage(`${ui.url}/#/checks`, {}, /^Failed to load resource: .* status of 404/);
  await appears(page.getByRole('status').getByText('no checks with a prefix'));
  // With one store, there is nothing to move.
  expect(await page.getByRole('link', { name: 'Move' }).count()).toBe(0);
});

test('without --allow-release, the page has no button to release an entry', async () => {
  const ui = await useMemory();
  fillSome(ui);
  const page = await openPage(`${ui.url}/#/lock/jobs%2Fnightly-report`);
  await page.locator('.entries tbody tr').nth(2).waitFor();
  expect(await page.getByRole('button').count()).toBe(0);
});

describe.each(['light', 'dark'] as const)('in %s', (scheme) => {
  test.each([360, 1280, 2560])(
    'axe finds nothing at a width of %d, and nothing is wider than the page',
    async (width) => {
      const ui = await useMemory({ reports: reportsOf(() => CHECKS) });
      fillSome(ui);
      write(ui, entryOf(`a/long/name/${'x'.repeat(150)}`, 1, 'u'.repeat(200), 30));
      const page = await openPage(ui.url, { width, scheme });
      const isWide = () => page.evaluate(() => document.documentElement.scrollWidth > window.innerWidth);
      await appears(page.getByRole('link', { name: 'orders/import' }));
      await expectAccessible(page);
      expect(await isWide()).toBe(false);
      ui.records.set('import', formatRecord({ at: 0, state: 'failed', uuid: '1'.repeat(32), label: 'db-3' }));
      await page.goto(`${ui.url}/#/jobs`);
      await appears(page.getByRole('row').filter({ hasText: 'failed' }));
      await expectAccessible(page);
      expect(await isWide()).toBe(false);
      for (const [view, text] of [
        ['elections', 'api-1'],
        ['checks', 'etcd v2: 1 failure, 1 warning'],
        ['move', 'step 1 can begin or continue'],
      ] as const) {
        await page.goto(`${ui.url}/#/${view}`);
        await appears(page.getByText(text));
        await expectAccessible(page);
        expect([view, await isWide()]).toEqual([view, false]);
      }
      await page.goto(`${ui.url}/#/lock/jobs%2Fnightly-report`);
      await page.locator('.entries tbody tr').nth(2).waitFor();
      await page.getByRole('img', { name: /^Timeline of 3 clients since/ }).waitFor();
      await expectAccessible(page);
      expect(await isWide()).toBe(false);
    },
  );
});

describe('with 10,000 locks and 1,000 waiters', () => {
  /** The seconds of processor time that the page's main thread has used. */
  async function useMeter(page: Page): Promise<() => Promise<number>> {
    const session = await page.context().newCDPSession(page);
    await session.send('Performance.enable', { timeDomain: 'threadTicks' });
    return async () => {
      const { metrics } = await session.send('Performance.getMetrics');
      return metrics.find(({ name }) => name === 'TaskDuration')?.value ?? Number.NaN;
    };
  }

  async function useMany(): Promise<Ui> {
    const ui = await useMemory();
    for (let at = 0; at < 10_000; at += 1) write(ui, entryOf(`job-${at}`, at, `${'7'.repeat(32)}@web-${at}`, 30));
    for (let at = 0; at < 1000; at += 1) write(ui, entryOf('job-77', 20_000 + at, `${'8'.repeat(32)}@web-${at}`, 30));
    return ui;
  }

  test.each([
    ['', '.contended .number'],
    ['#/lock/job-77', 'section[aria-label^="queue"] h2'],
  ])('"/%s" uses less than 1 s until it is shown, and less than that for a change', async (path, where) => {
    const ui = await useMany();
    const page = await openPage('about:blank');
    const used = await useMeter(page);
    await page.goto(`${ui.url}/${path}`);
    await page.locator('tbody tr').first().waitFor();
    const first = await used();
    expect(first).toBeLessThan(1);
    for (let round = 1; round <= 10; round += 1) {
      write(ui, entryOf('job-77', 30_000 + round, `${'9'.repeat(32)}@late`, 30));
      // Playwright's own locators use the main thread for longer than the page does.
      await page.waitForFunction(({ where, count }) => document.querySelector(where)?.textContent?.includes(count), {
        where,
        count: String(1000 + round),
      });
    }
    const each = ((await used()) - first) / 10;
    // Some 0.06 s, and 0.16 s for all of it, on a quiet machine.
    expect(each).toBeLessThan(first);
  });
});
