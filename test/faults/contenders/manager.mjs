import { EtcdClient, EtcdLockLost, LockManager } from 'etcd-v2-lock';
import { orders, step, takeTurns, tell } from './turns.mjs';

const { api, who, lock, endpoints, ttl, timeout, limit } = orders;
const client = new EtcdClient({ endpoints, randomizeEndpoints: false, api });
// The identity names the owner of an entry. It is unique among the processes of a campaign.
const locks = new LockManager(client, { ttl, identity: who });

await takeTurns(async () => {
  let began = false;
  tell('asks', { timeout });
  try {
    await locks.request(lock, { timeout, limit }, async (held) => {
      began = true;
      const token = String(held.fencingToken);
      tell('held', { token, limit });
      const lose = () => tell('lost', { token, why: String(held.signal.reason) });
      if (held.signal.aborted) lose();
      else held.signal.addEventListener('abort', lose);
      await step(token, () => held.assertHeld());
      held.assertHeld();
      held.signal.removeEventListener('abort', lose);
      tell('released', { token });
    });
  } catch (error) {
    if (began && !(error instanceof EtcdLockLost)) throw error;
    if (!began) tell('failed', { why: String(error) });
  }
});
await client.close();
