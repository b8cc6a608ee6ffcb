// `npm run record`: records the HTTP requests of python-etcd's `Lock` and etcd's answers in compat/transcripts/, which the tests replay.
import { mkdirSync, writeFileSync } from 'node:fs';
import { dirname, resolve } from 'node:path';
import { startEtcd } from './record/etcd.mjs';
import { startPython } from './record/python.mjs';
import { startRecorder } from './record/recorder.mjs';
import { scenarios } from './record/scenarios.mjs';
import { root } from './run.mjs';
import { ensureSystem } from './system.mjs';

const [out = 'compat/transcripts/python-etcd.json'] = process.argv.slice(2);
ensureSystem();
const etcd = await startEtcd();
const recorder = await startRecorder(etcd.url);
const python = startPython(recorder.url);
try {
  const recorded = [];
  for (const [scenario, play] of Object.entries(scenarios)) {
    recorder.begin();
    await play({ lock: python.lock, polls: recorder.polls });
    recorded.push({ scenario, ...(await recorder.end()) });
  }
  const file = resolve(root, out);
  mkdirSync(dirname(file), { recursive: true });
  const versions = { 'python-etcd': await python.version(), etcd: await etcd.version() };
  writeFileSync(file, `${JSON.stringify({ versions, scenarios: recorded }, null, 1)}\n`);
  console.log(`${recorded.length} scenarios recorded in ${file}`);
} finally {
  await python.stop();
  await recorder.stop();
  await etcd.stop();
}
