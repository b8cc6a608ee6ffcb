// `npm run quick`: lint, types, and the tests in `pure/`, which need no server, no process and no time.
import { attempt, checkSource, conclude, vitest } from './checks.mjs';
import { ensurePackages } from './packages.mjs';

conclude([attempt('packages', ensurePackages), ...checkSource(), vitest('pure')]);
