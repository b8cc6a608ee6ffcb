import { randomUUID } from 'node:crypto';
import { EtcdClient, Lock, LockManager } from 'etcd-v2-lock';
import { clocked } from '../setting/clock.mjs';

const TTL = 600;

/** The two APIs of this package behind one function: acquires a lock by name, returns an object with `release()`. */
const faces = {
  lock: {
    title: 'this package, `Lock`',
    on: (client) => async (name) => {
      const lock = new Lock(client, name);
      await lock.acquire({ lockTtl: TTL });
      return lock;
    },
  },
  manager: {
    title: 'this package, `LockManager`',
    on: (client) => {
      const locks = new LockManager(client, { ttl: TTL });
      return (name) => locks.acquire(name);
    },
  },
};

/**
 * @param face 'lock' or 'manager'
 * @param api the API of etcd: 'v2' or 'v3'
 */
export function ours(face, url, api = 'v2') {
  const { title, on } = faces[face];
  const clients = [0, 1].map(() => new EtcdClient({ endpoints: [url], api }));
  const [take, takeElsewhere] = clients.map(on);
  return {
    id: face,
    title,
    waitsBy: api,
    async cycle(name) {
      const held = await take(name);
      await held.release();
    },
    ...handOver(take, takeElsewhere),
    stop: () => Promise.all(clients.map((client) => client.close())),
  };
}

/** Several clients that acquire the lock in turn, none of which waits for another. */
export function oursInTurn(face, url, api, count) {
  const all = Array.from({ length: count }, () => ours(face, url, api));
  let turn = 0;
  return {
    title: `${all[0].title}, ${count} clients in turn`,
    cycle(name) {
      turn = (turn + 1) % count;
      return all[turn].cycle(name);
    },
    stop: () => Promise.all(all.map((one) => one.stop())),
  };
}

/** The lock alternates between two clients, as between two processes, but on one clock. */
function handOver(take, takeElsewhere) {
  const name = `hand-over-${randomUUID()}`;
  let takers = [take, takeElsewhere];
  let held;
  let waiting;
  return {
    async hold() {
      held = await takers[0](name);
    },
    async queue() {
      takers = takers.toReversed();
      waiting = takers[0](name);
    },
    async passOn() {
      let released;
      let next;
      const took = await clocked(async () => {
        released = held.release();
        next = await waiting;
      });
      await released;
      held = next;
      return took;
    },
    giveBack: () => held.release(),
  };
}
