import { randomUUID } from 'node:crypto';
import { Client } from 'undici';
import { clocked } from '../setting/clock.mjs';

const FORM = { 'content-type': 'application/x-www-form-urlencoded' };

/** The bare undici requests that every lock on the v2 API needs. */
class Bare {
  #client;

  constructor(url) {
    this.#client = new Client(url, { headersTimeout: 0, bodyTimeout: 0 });
  }

  async append(name) {
    const form = { method: 'POST', path: `/v2/keys/_locks/${name}`, headers: FORM, body: 'value=bare&ttl=600' };
    return (await (await this.#client.request(form)).body.json()).node;
  }

  async read(name) {
    const { body } = await this.#client.request({ method: 'GET', path: `/v2/keys/_locks/${name}?recursive=true` });
    return body.json();
  }

  async remove(key) {
    const { body } = await this.#client.request({ method: 'DELETE', path: `/v2/keys${key}` });
    await body.dump();
  }

  /** Resolves when the entry changes after its `modifiedIndex`. */
  async changed({ key, modifiedIndex }) {
    const path = `/v2/keys${key}?wait=true&waitIndex=${modifiedIndex + 1}`;
    return (await this.#client.request({ method: 'GET', path })).body.json();
  }

  stop() {
    return this.#client.close();
  }
}

export function twoWrites(url) {
  const bare = new Bare(url);
  return {
    id: 'writes',
    title: 'floor: bare POST + DELETE',
    async cycle(name) {
      await bare.remove((await bare.append(name)).key);
    },
    stop: () => bare.stop(),
  };
}

export function threeRequests(url) {
  const bare = new Bare(url);
  return {
    id: 'requests',
    title: 'floor: bare POST + GET + DELETE',
    async cycle(name) {
      const { key } = await bare.append(name);
      await bare.read(name);
      await bare.remove(key);
    },
    stop: () => bare.stop(),
  };
}

/** The minimum of a hand-over: a bare DELETE, the bare long poll it ends, and one listing by the waiter. */
export function bareHandOver(url) {
  const [holder, waiter] = [new Bare(url), new Bare(url)];
  const name = `floor-${randomUUID()}`;
  let held;
  let seen;
  return {
    id: 'event',
    title: 'floor: bare DELETE → event + GET',
    async hold() {
      held = await holder.append(name);
    },
    async queue() {
      seen = waiter.changed(held);
    },
    async passOn() {
      let removed;
      const took = await clocked(async () => {
        removed = holder.remove(held.key);
        await seen;
        await waiter.read(name);
      });
      await removed;
      held = await holder.append(name);
      return took;
    },
    giveBack: () => holder.remove(held.key),
    stop: () => Promise.all([holder.stop(), waiter.stop()]),
  };
}
