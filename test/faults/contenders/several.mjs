import { EtcdClient, EtcdLockLost, LockManager } from 'etcd-v2-lock';
import { guardedStep, nextStep, orders, takeTurns, tell } from './turns.mjs';

const { api, who, lock, also, endpoints, ttl, timeout } = orders;
const client = new EtcdClient({ endpoints, randomizeEndpoints: false, api });
// The identity names the owner of an entry. It is unique among the processes of a campaign.
const locks = new LockManager(client, { ttl, identity: who });

await takeTurns(async () => {
  const names = Math.random() < 0.5 ? [lock, also] : [also, lock];
  let began = false;
  tell('asks', { timeout });
  try {
    await locks.request(names, { timeout }, async (held) => {
      began = true;
      const tokens = new Map(names.map((name) => [name, String(held.get(name).fencingToken)]));
      const tellAll = (kind, more) => {
        for (const [name, token] of tokens) tell(kind, { lock: name, token, ...more });
      };
      tellAll('held');
      const lose = () => tellAll('lost', { why: String(held.signal.reason) });
      if (held.signal.aborted) lose();
      else held.signal.addEventListener('abort', lose);
      const number = nextStep();
      for (const [name, token] of tokens) await guardedStep(token, () => held.assertHeld(), { lock: name, number });
      held.assertHeld();
      held.signal.removeEventListener('abort', lose);
      tellAll('released');
    });
  } catch (error) {
    if (began && !(error instanceof EtcdLockLost)) throw error;
    if (!began) tell('failed', { why: String(error) });
  }
});
await client.close();
