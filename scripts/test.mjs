// `npm test`: what a newcomer runs to trust a clone. `npm test -- --all`, that is `npm run test:all`, runs all tests but the peers.
// `--no-simulation`: without the simulated worlds.
import { parseArgs } from 'node:util';
import { attempt, checkSource, conclude, vitest } from './checks.mjs';
import { ensurePackages } from './packages.mjs';
import { beginSimulation } from './simulation-beside.mjs';
import { ensureRare, ensureSystem } from './system.mjs';

/** All files outside of `long/`, and one short round of faults. */
const SHORT = ['etcd', 'alone', 'faults-v3', 'simulation'];
/** All but those that need what `npm run peers` builds. Vitest joins several patterns by "or", so two with "!" would match all. */
const ALL = ['etcd', 'alone', 'embedded', 'long', 'bridge', 'faults-*', 'simulation'];

const options = { all: { type: 'boolean', default: false }, 'no-simulation': { type: 'boolean', default: false } };
const { all, 'no-simulation': isSimulatedElsewhere } = parseArgs({ options }).values;

const prepared = [
  attempt('packages', ensurePackages),
  attempt('system', ensureSystem),
  ...(all ? [attempt('rare programs', ensureRare)] : []),
];
const simulated = isSimulatedElsewhere ? undefined : beginSimulation(all ? 10_000 : 300);
const checked = [
  ...checkSource(),
  // A run of its own: so it is noticed if no file belongs to this project.
  vitest('pure'),
  vitest(...(all ? ALL : SHORT)),
];
conclude([...prepared, ...checked, ...(simulated ? [await simulated()] : [])]);
