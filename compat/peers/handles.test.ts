import { describe, expect, inject, test } from 'vitest';
import { parseHandle } from '../../src/cli/handles/handle.ts';
import { startCli } from '../../test/support/cli.ts';
import { base64, entriesBelow, gateway } from '../../test/support/gateway.ts';
import { freshName, recentTtl } from '../../test/support/locks.ts';
import { ask } from '../../test/support/queues.ts';

describe.each(['3.5', '3.6'] as const)('on etcd %s', (version) => {
  test('a hold of acquire is renewed and released by other processes, and its handle then does nothing more', async () => {
    const [etcd, name] = [inject('servers')[version], freshName()];
    const entries = () => entriesBelow(`/_locks/${name}/`, etcd);
    const acquire = (...flags: readonly string[]) =>
      ask(['--api', 'v3', 'acquire', name, '--ttl', '600', ...flags], etcd);
    const { code, stdout } = await acquire();
    expect(code).toBe(0);
    const handle = stdout.trim();
    expect(await entries()).toMatchObject([{ ttl: recentTtl(600) }]);
    expect(await acquire('--if-available')).toMatchObject({ code: 1, stdout: '' });
    const [entry] = await entries();
    const { ID: lease } = await gateway('/lease/grant', { TTL: '60' }, etcd);
    const old = { key: base64(entry?.key ?? ''), value: base64(entry?.value ?? ''), lease };
    await gateway('/kv/put', old, etcd);
    expect(await entries()).toMatchObject([{ ttl: expect.toSatisfy((ttl: number) => ttl <= 60) }]);
    expect(await ask(['renew', '--handle', handle], etcd)).toMatchObject({ code: 0, stderr: '' });
    expect(await entries()).toMatchObject([{ ttl: recentTtl(600) }]);
    const waiting = startCli(['--api', 'v3', 'acquire', name, '--ttl', '600'], { ETCD_ENDPOINTS: etcd }).result;
    expect(await ask(['release', '--handle', handle], etcd)).toMatchObject({ code: 0, stderr: '' });
    const next = (await waiting).stdout.trim();
    expect(parseHandle(next).fencingToken).toBeGreaterThan(parseHandle(handle).fencingToken);
    expect(await ask(['renew', '--handle', handle], etcd)).toMatchObject({ code: 75, stdout: '' });
    expect(await ask(['release', '--handle', handle], etcd)).toMatchObject({ code: 1, stdout: '' });
    await ask(['release', '--handle', next], etcd);
    expect(await entries()).toEqual([]);
  });
});
