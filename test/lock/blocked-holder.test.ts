import { inject, test } from 'vitest';
import { startBlockedHolder } from '../support/blocked-holder.ts';

// Holds are guaranteed up to an eighth of the TTL. Where etcd is as near as here they are kept beyond that.
test.concurrent.for([
  [6, 0.6],
  [6, 1],
  [15, 1.3],
  [15, 2.6],
] as const)(
  'a hold with a TTL of %i s is kept while the event loop is blocked for %f s again and again',
  {
    timeout: 60_000,
  },
  async ([ttl, slice], { expect, onTestFinished }) => {
    const script = startBlockedHolder({ etcd: inject('etcd'), ttl, slice });
    onTestFinished(() => {
      script.process.kill('SIGKILL');
    });
    expect(await script.result).toMatchObject({ stdout: 'kept\n', stderr: '', code: 0 });
  },
);
