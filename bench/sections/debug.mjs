import { randomUUID } from 'node:crypto';
import { cpSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { clocked } from '../setting/clock.mjs';
import { alternate, WARM_UP } from './rounds.mjs';

const ROOT = fileURLToPath(new URL('../..', import.meta.url));
/** Inside node_modules, so that the copies find the same dependencies. */
const COPIES = join(ROOT, 'node_modules/.cache/etcd-v2-lock-bench');
/** Two of the copies are identical: their difference is noise of the machine. */
const IDS = ['with', 'alike', 'without'];
const CALL = /^\s*debug\(.*\);$/gm;

/** Compares the package, with `debug` off, with an identical copy and with a copy without calls of `debug`. */
export async function debugCost(url, { rounds, times }) {
  const copies = join(COPIES, String(process.pid));
  try {
    const cut = makeCopies(copies);
    const contestants = await Promise.all(IDS.map((id) => load(join(copies, id), id, url)));
    for (const contestant of contestants) await cycles(contestant, WARM_UP * times);
    const samples = await alternate(contestants, rounds, (contestant) => cycles(contestant, times));
    for (const { client } of contestants) await client.close();
    const pick = (key) =>
      Object.fromEntries(Object.entries(samples).map(([id, all]) => [id, all.map((one) => one[key])]));
    return { cut, rounds: pick('took'), cpu: pick('cpu') };
  } finally {
    rmSync(copies, { recursive: true, force: true });
  }
}

/** Creates the copies; returns how many calls of `debug` were removed. */
function makeCopies(directory) {
  mkdirSync(directory, { recursive: true });
  for (const copy of IDS) cpSync(join(ROOT, 'dist'), join(directory, copy), { recursive: true });
  const without = join(directory, 'without');
  let cut = 0;
  for (const file of readdirSync(without, { recursive: true, encoding: 'utf8' })) {
    if (!file.endsWith('.js')) continue;
    const source = readFileSync(join(without, file), 'utf8');
    cut += source.match(CALL)?.length ?? 0;
    writeFileSync(join(without, file), source.replace(CALL, ''));
  }
  if (cut === 0) throw new Error('no call of debug found in dist');
  return cut;
}

async function load(directory, id, url) {
  const { EtcdClient, Lock } = await import(pathToFileURL(join(directory, 'index.js')).href);
  return { id, Lock, client: new EtcdClient({ endpoints: [url] }) };
}

/** Returns milliseconds of each cycle, and milliseconds of CPU time per cycle. */
async function cycles({ client, Lock }, times) {
  const name = `debug-${randomUUID()}`;
  const took = [];
  const before = process.cpuUsage();
  for (let i = 0; i < times; i += 1)
    took.push(
      await clocked(async () => {
        const lock = new Lock(client, name);
        await lock.acquire({ lockTtl: 600 });
        await lock.release();
      }),
    );
  const { user, system } = process.cpuUsage(before);
  return { took, cpu: [(user + system) / 1000 / times] };
}
