// `import` and `require` of the entry points for metrics share one copy of prom-client, and count the requests of both.
import assert from 'node:assert/strict';
import { createRequire } from 'node:module';
import { EtcdClient, LockManager } from 'etcd-v2-lock';
import { observeLocks as trace } from 'etcd-v2-lock/opentelemetry';
import { observeLocks } from 'etcd-v2-lock/prom-client';
import { EmbeddedEtcd } from 'etcd-v2-lock/server';
import { register } from 'prom-client';

const required = createRequire(import.meta.url)('etcd-v2-lock/prom-client');
assert.equal(required.observeLocks, observeLocks);
const stop = observeLocks();
const stopTracing = trace();

const etcd = await EmbeddedEtcd.start();
const client = new EtcdClient({ endpoints: etcd.url });
await new LockManager(client).request('report', () => {});
await client.close();
await etcd.stop();

const requests = await register.getSingleMetric('etcd_lock_requests_total').get();
const counted = requests.values.filter(({ value }) => value > 0);
assert.deepEqual(counted, [{ value: 1, labels: { lock: 'report', outcome: 'held' } }]);
stopTracing();
stop();
assert.equal(register.getSingleMetric('etcd_lock_requests_total'), undefined);
