import { randomUUID } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { Agent, request } from 'undici';
import { pythonEtcd } from '../contestants/python.mjs';
import { startBridge } from '../setting/bridge.mjs';
import { watchesAt } from '../setting/etcd.mjs';
import { until } from '../setting/until.mjs';
import { uncontended } from './uncontended.mjs';

/**
 * Measures milliseconds per cycle of python-etcd: on etcd's own v2 API, and through a bridge on the v3 API of the same etcd. Both
 * take turns in each round.
 */
export async function bridgedCycles(etcd, { rounds, times }, processors) {
  const bridge = await startBridge(etcd, processors);
  try {
    const api = { cycles: (url) => [pythonEtcd(url)] };
    const { direct, bridged } = await uncontended(api, { direct: etcd.url, bridged: bridge.url }, { rounds, times });
    return { direct: direct.rounds.python, bridged: bridged.rounds.python };
  } finally {
    await bridge.stop();
  }
}

/** python-etcd through a bridge: the requests that the bridge sends to etcd are counted. */
export const bridgedPython = {
  async countedCycles(url) {
    const bridge = await startBridge({ url });
    const python = pythonEtcd(bridge.url);
    const stop = () => Promise.all([python.stop(), bridge.stop()]);
    return [{ ...python, id: 'bridge', stop }];
  },
};

/** Measures the memory of the bridge and of etcd for each open poll, and the milliseconds until the polls of an entry have ended. */
export async function bridgedPolls(etcd, { entries, polls }, processors) {
  const bridge = await startBridge(etcd, processors);
  const agent = new Agent({ headersTimeout: 0, bodyTimeout: 0, connect: { timeout: 0 } });
  const ask = async (method, path, form) => {
    const headers = form === undefined ? {} : { 'content-type': 'application/x-www-form-urlencoded' };
    const { body } = await request(`${bridge.url}/v2/keys${path}`, { method, dispatcher: agent, headers, body: form });
    return body;
  };
  try {
    const dir = `/_locks/${randomUUID()}`;
    const keys = [];
    for (let i = 0; i < entries; i += 1)
      keys.push((await (await ask('POST', dir, `value=${randomUUID()}&ttl=600`)).json()).node.key);
    const before = {
      bridge: residentOf(bridge.pid),
      etcd: residentOf(etcd.pid),
      watches: (await watchesAt(etcd.url)).open,
    };
    const waiting = [];
    for (let i = 0; i < polls; i += 1) {
      const key = keys[i % entries];
      waiting.push({ key, body: await ask('GET', `${key}?wait=true&waitIndex=${Number(key.slice(-20)) + 1}`) });
    }
    await until(
      () => watchesAt(etcd.url),
      ({ open }) => open - before.watches >= polls,
    );
    const after = { bridge: residentOf(bridge.pid), etcd: residentOf(etcd.pid) };
    const woken = waiting.filter(({ key }) => key === keys[0]);
    const start = performance.now();
    await (await ask('DELETE', keys[0])).dump();
    await Promise.all(woken.map(({ body }) => body.dump()));
    const took = performance.now() - start;
    for (const { key, body } of waiting) if (key !== keys[0]) body.destroy();
    for (const key of keys.slice(1)) await (await ask('DELETE', key)).dump();
    const perPoll = (of) => (after[of] - before[of]) / polls;
    return { entries, polls, bridge: perPoll('bridge'), etcd: perPoll('etcd'), woken: woken.length, took };
  } finally {
    await agent.destroy();
    await bridge.stop();
  }
}

/** Returns the memory of a process in KiB. */
const residentOf = (pid) => Number(/^VmRSS:\s+(\d+) kB$/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1]);
