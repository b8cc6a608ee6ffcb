import { type EtcdClient, EtcdException, Lock, LockManager } from '../../../src/index.ts';

type Call = (manager: LockManager, client: EtcdClient, lock: string) => unknown;

const ignore = (): void => {};

/** Calls with invalid arguments: each is refused before anything is sent. */
const MISTAKES: readonly Call[] = [
  (manager, _, lock) => manager.request(lock, { mode: 'common' as 'shared' }, ignore),
  (manager, _, lock) => manager.request(lock, { mode: 'shared', limit: 2 }, ignore),
  (manager, _, lock) => manager.request(lock, { limit: 0 }, ignore),
  (manager, _, lock) => manager.request(lock, { timeout: -1 }, ignore),
  (manager, _, lock) => manager.request(lock, { maxHold: Number.NaN }, ignore),
  (manager, _, lock) => manager.request([lock, lock], {}, ignore),
  (manager, _, lock) => manager.request([lock, `${lock}2`], { reentrant: true as never }, ignore),
  (manager, _, lock) => manager.request(lock, {}, undefined as unknown as typeof ignore),
  (manager, _, lock) => manager.request(lock, { signal: 'soon' as never }, ignore),
  (manager) => manager.acquire([]),
  (manager, _, lock) => manager.release(lock, {}),
  (manager, _, lock) => manager.release(lock, { key: '' }),
  (manager, _, lock) => manager.release(lock, { uuid: 1 as never }),
  (manager, _, lock) => manager.elect(lock, { value: 'x'.repeat(10_000) }),
  (manager, _, lock) => manager.once(lock, { every: 7 as never }, ignore),
  (manager, _, lock) => manager.once(lock, { every: 'now and then' }, ignore),
  (manager, _, lock) => manager.once(lock, { every: '0 0 32 * *' }, ignore),
  (manager, _, lock) => manager.once(lock, { every: '367d' }, ignore),
  (manager, _, lock) => manager.once(lock, { every: '1h', timeZone: 'UTC' }, ignore),
  (manager, _, lock) => manager.once(lock, { every: '@daily', timeZone: 'Europe/Atlantis' }, ignore),
  () => new LockManager('http://10.0.0.1:2379' as never),
  (_, client) => new Lock(client, ''),
  (_, client, lock) => new Lock(client, lock).acquire({ lockTtl: 0 }),
];

/** @throws {Error} if one of them is not refused */
export async function makeMistakes(...around: Parameters<Call>): Promise<void> {
  for (const [i, mistake] of MISTAKES.entries()) {
    const refusal = await Promise.resolve()
      .then(() => mistake(...around))
      .then(ignore, (error: unknown) => error);
    const isRefused = refusal instanceof TypeError || refusal instanceof RangeError || refusal instanceof EtcdException;
    if (!isRefused) throw new Error(`mistake ${i} is not refused`, { cause: refusal });
  }
}
