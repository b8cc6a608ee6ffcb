import { lockByEtcdctl } from '../../support/etcdctl.mjs';
import { guardedStep, orders, takeTurns, tell } from './turns.mjs';

// Go's Mutex does not notice a loss, so it cannot check before it writes.
const check = () => {};

await takeTurns(async () => {
  const { lock, endpoints, ttl } = orders;
  tell('asks');
  const turn = lockByEtcdctl(`/_locks/${lock}`, { endpoints, ttl });
  let held;
  try {
    held = await turn.held;
  } catch (error) {
    tell('failed', { why: String(error) });
    return;
  }
  const token = String(held.token);
  tell('held', { token, uuid: `go:${held.key.slice(held.key.lastIndexOf('/') + 1)}` });
  await guardedStep(token, check);
  tell('released', { token });
  // If that fails, the entry stays until its lease has expired.
  await turn.release().catch(() => {});
});
