// `npm test`: what a newcomer runs to trust a clone. `npm test -- --all`, that is `npm run test:all`, runs all tests but the peers.
import { parseArgs } from 'node:util';
import { attempt, checkSource, conclude, vitest } from './checks.mjs';
import { ensurePackages } from './packages.mjs';
import { ensureShells, ensureSystem } from './system.mjs';

/** All files outside of `long/`, and one short round of faults. */
const SHORT = ['etcd', 'alone', 'faults-v3'];
/** All but those that need what `npm run peers` builds. Vitest joins several patterns by "or", so two with "!" would match all. */
const ALL = ['etcd', 'alone', 'embedded', 'long', 'bridge', 'faults-*'];

const { all } = parseArgs({ options: { all: { type: 'boolean', default: false } } }).values;

conclude([
  attempt('packages', ensurePackages),
  attempt('system', ensureSystem),
  ...(all ? [attempt('shells', ensureShells)] : []),
  ...checkSource(),
  // A run of its own: so it is noticed if no file belongs to this project.
  vitest('pure'),
  vitest(...(all ? ALL : SHORT)),
]);
