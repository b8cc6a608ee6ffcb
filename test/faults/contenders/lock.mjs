import { EtcdClient, Lock } from 'etcd-v2-lock';
import { guardedStep, orders, takeTurns, tell } from './turns.mjs';

class NotMine extends Error {}

const { api, lock: name, endpoints, ttl: lockTtl, timeout } = orders;
const client = new EtcdClient({ endpoints, randomizeEndpoints: false, api });
const lock = new Lock(client, name);

await takeTurns(async () => {
  tell('asks', { uuid: lock.uuid, timeout });
  try {
    await lock.acquire({ lockTtl, keepAlive: true, timeout });
  } catch (error) {
    tell('failed', { why: String(error) });
    return;
  }
  const token = String(lock.fencingToken);
  tell('held', { token });
  const { signal } = lock;
  const lose = () => tell('lost', { token, why: String(signal.reason) });
  if (signal.aborted) lose();
  else signal.addEventListener('abort', lose);
  const isMine = () => lock.isTaken && !signal.aborted;
  await guardedStep(token, () => {
    if (!isMine()) throw new NotMine();
  }).catch((error) => {
    if (!(error instanceof NotMine)) throw error;
  });
  if (isMine()) tell('released', { token });
  signal.removeEventListener('abort', lose);
  // If etcd cannot be reached, the removal is retried in the background; the next acquire() waits for it.
  await lock.release().catch(() => {});
});
await client.close();
