// What ui examines when a viewer asks for it.
import { expect, inject, test } from 'vitest';
import type { ShownChecks } from '../../src/cli/ui/shapes.ts';
import { diagnose } from '../support/doctor.ts';
import { useProxy } from '../support/locks.ts';
import { ask, startUi } from '../support/ui.ts';

test.each(['v2', 'v3'] as const)(
  'on etcd %s, the checks have the findings of doctor, but nothing is written',
  async (api) => {
    const proxy = await useProxy();
    const asked: string[] = [];
    proxy.intercept(({ method, path }) => {
      asked.push(`${method} ${path}`);
      return undefined;
    });
    const { line: url } = await startUi(['--api', api], proxy.url);
    const { status, body } = await ask(`${url}/api/checks`);
    expect(status).toBe(200);
    const { stores, took } = JSON.parse(body) as ShownChecks;
    expect(took).toBeLessThan(60);
    expect(stores.map((store) => store.api)).toEqual([api]);
    // Whether a healthy member is slow depends on the moment.
    const aboutIn = (findings: readonly { readonly level: string; readonly about: string }[]): string[] =>
      [...new Set(findings.map(({ level, about }) => (about === 'health' ? about : `${level} ${about}`)))]
        .filter((each) => !/names|stores|leases/.test(each))
        .sort();
    const { findings } = await diagnose(inject('etcd'), ['--api', api]);
    expect(aboutIn(stores[0]?.findings ?? [])).toEqual(aboutIn(findings));
    expect(asked.filter((each) => each.includes('doctor'))).toEqual([]);
    // A removal of a key that does not exist tests the permission.
    expect(asked.filter((each) => /^(?:PUT|POST) \/v2\//.test(each))).toEqual([]);
  },
);

test('the cluster is checked once for all who ask within a minute', async () => {
  const proxy = await useProxy();
  let checks = 0;
  proxy.intercept(({ path }) => {
    if (path === '/version') checks += 1;
    return undefined;
  });
  const { line: url } = await startUi(['--api', 'v3'], proxy.url);
  const before = checks;
  const answers = await Promise.all(Array.from({ length: 20 }, () => ask(`${url}/api/checks`)));
  const once = checks - before;
  expect(once).toBeGreaterThan(0);
  const later = await ask(`${url}/api/checks`);
  expect(new Set([...answers, later].map(({ body }) => body)).size).toBe(1);
  expect(checks - before).toBe(once);
});

test('a prefix has no checks, and one store has no move', async () => {
  const { line: one } = await startUi(['jobs/']);
  for (const path of ['checks', 'move']) {
    const { status, body } = await ask(`${one}/api/${path}`);
    expect([status, body]).toEqual([404, expect.stringContaining('start "ui" without a prefix')]);
  }
  const { line: other } = await startUi([]);
  const { status, body } = await ask(`${other}/api/move`);
  expect([status, body]).toEqual([404, expect.stringContaining('start "ui" with --api both')]);
});
