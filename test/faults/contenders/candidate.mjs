import { EtcdClient, EtcdLockLost, LockManager } from 'etcd-v2-lock';
import { guardedStep, orders, takeTurns, tell } from './turns.mjs';

const { api, who, lock, endpoints, ttl } = orders;
const client = new EtcdClient({ endpoints, randomizeEndpoints: false, api });
// The identity names the owner of an entry. It is unique among the processes of a campaign.
const locks = new LockManager(client, { ttl, identity: who });

await takeTurns(async () => {
  let began = false;
  tell('asks');
  try {
    for await (const term of locks.elect(lock, { value: who }).campaign()) {
      began = true;
      const token = String(term.fencingToken);
      tell('held', { token });
      const lose = () => tell('lost', { token, why: String(term.signal.reason) });
      if (term.signal.aborted) lose();
      else term.signal.addEventListener('abort', lose);
      await guardedStep(token, () => term.assertHeld());
      term.assertHeld();
      term.signal.removeEventListener('abort', lose);
      tell('released', { token });
      break;
    }
  } catch (error) {
    if (began && !(error instanceof EtcdLockLost)) throw error;
    if (!began) tell('failed', { why: String(error) });
  }
});
await client.close();
