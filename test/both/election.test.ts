import { expect, inject, onTestFinished, test } from 'vitest';
import { EtcdUnusableAnswer } from '../../src/errors.ts';
import { LockManager } from '../../src/manager/manager.ts';
import { startTcpProxy } from '../faults/tcp-proxy.ts';
import { useEtcdClient } from '../support/both.ts';
import { serve } from '../support/clients.ts';
import { next, untilFinished } from '../support/iterators.ts';
import { freshName } from '../support/locks.ts';
import { until } from '../support/until.ts';

test.each(['v2', 'v3', 'both'] as const)(
  'an observer with api %s continues after an outage, with the leader at that time',
  async (api) => {
    const name = freshName();
    const line = await startTcpProxy(inject('etcd'));
    onTestFinished(() => line.stop());
    const others = new LockManager(useEtcdClient({ api }));
    const observer = new LockManager(useEtcdClient({ api, endpoints: line.url }));
    const [first, second] = ['first', 'second'].map((value) => others.elect(name, { value }).campaign());
    await first?.next();
    const leaders = observer.elect(name).observe({ signal: untilFinished() });
    expect(await next(leaders)).toMatchObject({ value: 'first' });
    const following = next(leaders);
    line.refuse();
    line.cut();
    const { accepted } = line;
    await until(
      () => line.accepted,
      (count) => count > accepted + 1,
    );
    await first?.return();
    await second?.next();
    line.heal();
    expect(await following).toMatchObject({ value: 'second' });
    await second?.return();
    expect(await next(leaders)).toBeUndefined();
  },
);

test.each(['v2', 'v3', 'both'] as const)(
  'a campaign with api %s that begins before etcd is up leads once etcd is up',
  async (api) => {
    const line = await startTcpProxy(inject('etcd'));
    onTestFinished(() => line.stop());
    line.refuse();
    const locks = new LockManager(useEtcdClient({ api, endpoints: line.url }));
    const campaign = locks.elect(freshName()).campaign();
    const leading = next(campaign);
    // More tries than without patience: three, with several requests each.
    await until(
      () => line.accepted,
      (count) => count > 12,
    );
    line.heal();
    expect((await leading).fencingToken).toBeGreaterThan(0n);
    await campaign.return();
  },
);

test.each(['v2', 'v3', 'both'] as const)(
  'a campaign with api %s rejects at once if the server is not etcd',
  async (api) => {
    const { url } = await serve((socket) => void socket.end('HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello'));
    const locks = new LockManager(useEtcdClient({ api, endpoints: url }));
    await expect(next(locks.elect('x').campaign())).rejects.toBeInstanceOf(EtcdUnusableAnswer);
  },
);

test.each(['v2', 'v3', 'both'] as const)('an observer with api %s rejects if its first read fails', async (api) => {
  const locks = new LockManager(useEtcdClient({ api, endpoints: 'http://127.0.0.1:1' }));
  await expect(next(locks.elect('x').observe())).rejects.toMatchObject({ code: 'ETCD_CONNECTION_FAILED' });
});
