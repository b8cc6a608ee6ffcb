import { randomUUID } from 'node:crypto';
import { Etcd3 } from 'etcd3';
import { Client, Pool } from 'undici';
import { clocked } from '../setting/clock.mjs';

const TTL = 600;
const base64 = (text) => Buffer.from(text).toString('base64');
const prefixOf = (name) => `/_locks/${name}/`;
/** The first key after all that begin with the prefix: "0" follows "/". */
const endOf = (prefix) => `${prefix.slice(0, -1)}0`;

/**
 * The bare requests that every lock in the queue of Go's `concurrency.Mutex` needs, through the JSON gateway: a transaction that
 * creates the key and reads who holds the lock, and the key's removal. One lease serves all keys, as one session does.
 */
class Gateway {
  #client;
  #lease;

  constructor(url, connections = 1) {
    const options = { headersTimeout: 0, bodyTimeout: 0 };
    this.#client = connections === 1 ? new Client(url, options) : new Pool(url, { ...options, connections });
  }

  async #post(path, message) {
    const { body } = await this.#client.request({ method: 'POST', path: `/v3${path}`, body: JSON.stringify(message) });
    return body.json();
  }

  #session() {
    this.#lease ??= this.#post('/lease/grant', { TTL: String(TTL) }).then(({ ID }) => ID);
    return this.#lease;
  }

  async append(name) {
    const prefix = prefixOf(name);
    const lease = await this.#session();
    const key = base64(prefix + lease);
    const { responses } = await this.#post('/kv/txn', {
      compare: [{ key, target: 'CREATE', result: 'EQUAL', create_revision: '0' }],
      success: [{ request_put: { key, lease } }, { request_range: first(prefix) }],
      failure: [{ request_range: { key } }, { request_range: first(prefix) }],
    });
    return { key, revision: responses[0].response_put.header.revision };
  }

  read(name) {
    return this.#post('/kv/range', first(prefixOf(name)));
  }

  remove(key) {
    return this.#post('/kv/deleterange', { key });
  }

  /** Resolves when the key is deleted after that revision. Uses the connection until then. */
  async deleted({ key, revision }) {
    const message = { create_request: { key, start_revision: String(Number(revision) + 1), filters: ['NOPUT'] } };
    const { body } = await this.#client.request({
      method: 'POST',
      path: '/v3/watch',
      body: JSON.stringify(message),
    });
    for await (const chunk of body) if (chunk.includes('"DELETE"')) return;
  }

  stop() {
    return this.#client.close();
  }
}

const first = (prefix) => ({
  key: base64(prefix),
  range_end: base64(endOf(prefix)),
  sort_target: 'CREATE',
  sort_order: 'ASCEND',
  limit: '1',
});

/** @param connections how many cycles may be under way at once */
export function twoWritesByGateway(url, connections = 1) {
  const gateway = new Gateway(url, connections);
  return {
    id: 'gateway',
    title: 'floor: bare txn + deleterange, gateway',
    async cycle(name) {
      await gateway.remove((await gateway.append(name)).key);
    },
    stop: () => gateway.stop(),
  };
}

/** The same two requests by gRPC, with npm etcd3's client. */
export function twoWritesByGrpc(url) {
  const client = new Etcd3({ hosts: url });
  const session = client.lease(TTL);
  return {
    id: 'grpc',
    title: 'the same two requests, gRPC (npm `etcd3`)',
    async cycle(name) {
      const lease = await session.grant();
      const prefix = prefixOf(name);
      const key = prefix + lease;
      const range = () => client.getAll().prefix(prefix).sort('Create', 'Ascend').limit(1);
      await client
        .if(key, 'Create', '==', 0)
        .then(client.put(key).value('').lease(lease), range())
        .else(client.get(key), range())
        .commit();
      await client.delete().key(key);
    },
    async stop() {
      await session.revoke();
      client.close();
    },
  };
}

/** The minimum of a hand-over: a bare removal, the event of a watch that is open already, and one read by the waiter. */
export function bareHandOverByGateway(url) {
  const [holder, waiter] = [new Gateway(url), new Gateway(url)];
  const name = `floor-${randomUUID()}`;
  let watching;
  let held;
  let seen;
  return {
    id: 'event',
    title: 'floor: bare deleterange → event + range, gateway',
    waitsBy: 'v3',
    async hold() {
      held = await holder.append(name);
    },
    async queue() {
      watching = new Gateway(url);
      seen = watching.deleted(held);
    },
    async passOn() {
      let removed;
      const took = await clocked(async () => {
        removed = holder.remove(held.key);
        await seen;
        await waiter.read(name);
      });
      await removed;
      await watching.stop();
      held = await holder.append(name);
      return took;
    },
    giveBack: () => holder.remove(held.key),
    stop: () => Promise.all([holder.stop(), waiter.stop()]),
  };
}
