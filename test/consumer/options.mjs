// Options that do not exist, or look like milliseconds, are reported before any request.
import assert from 'node:assert/strict';
import { EtcdClient, Lock, LockManager } from 'etcd-v2-lock';

assert.throws(() => new EtcdClient({ endpoint: 'localhost:2379' }), {
  name: 'TypeError',
  message: 'unknown option "endpoint": did you mean "endpoints"?',
});
assert.throws(() => new LockManager(), TypeError);
assert.throws(() => new Lock(undefined, 'report'), TypeError);

// The form that the command line takes.
const client = new EtcdClient({ endpoints: new URL(process.env.ETCD_ENDPOINTS).host });
const locks = new LockManager(client);
const name = `options-${process.version}-${process.pid}`;
await assert.rejects(
  locks.request(name, { timeoutMs: 5000 }, () => {}),
  { name: 'TypeError', message: 'unknown option "timeoutMs": use "timeout", in seconds' },
);

const emit = process.emitWarning;
const warnings = [];
process.emitWarning = (_, ...rest) => warnings.push(rest.flatMap((part) => part?.code ?? part));
await locks.request(name, { timeout: 30_000 }, () => {});
await locks.request(name, { timeout: 30_000 }, () => {});
process.emitWarning = emit;
assert.equal(warnings.length, 1);
assert.ok(warnings[0].includes('ETCD_LOCK_MILLISECONDS'));
await client.close();
