// `npm run peers`: tests the lock on etcd v3 with servers and clients that need Go, Java or pip.
import { attempt, conclude, vitest } from './checks.mjs';
import { ensurePackages } from './packages.mjs';
import { buildPeers } from './peers/build.mjs';
import { ensureBuilders } from './peers/needs.mjs';
import { ensureSystem } from './system.mjs';

const counts = [];
const prepared = [
  ['npm run peers', ensureBuilders],
  ['packages', ensurePackages],
  ['system', ensureSystem],
  ['build', buildPeers],
].every(([name, prepare]) => {
  const count = attempt(name, prepare);
  counts.push(count);
  return count.failed.length === 0;
});
if (prepared) counts.push(vitest('peers*'));
conclude(counts);
