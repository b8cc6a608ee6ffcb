import { expect, inject, onTestFinished, test } from 'vitest';
import { LockManager } from '../../src/manager/manager.ts';
import { startTcpProxy } from '../faults/tcp-proxy.ts';
import { useEtcdClient } from '../support/both.ts';
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

test.each(['v2', 'v3', 'both'] as const)('an observer with api %s rejects if its first read fails', async (api) => {
  const locks = new LockManager(useEtcdClient({ api, endpoints: 'http://127.0.0.1:1' }));
  await expect(next(locks.elect('x').observe())).rejects.toMatchObject({ code: 'ETCD_CONNECTION_FAILED' });
});
