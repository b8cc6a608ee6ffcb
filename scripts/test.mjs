// `npm test`: runs all checks. A check that cannot run is a failure, never silently skipped.
import { attempt, check, conclude, vitest } from './checks.mjs';
import { ensurePackages } from './packages.mjs';
import { run, runPackage } from './run.mjs';
import { ensureSystem } from './system.mjs';

conclude([
  attempt('packages', ensurePackages),
  attempt('system', ensureSystem),
  check('lint', () => runPackage('biome', ['ci', '.'])),
  check('types', () => runPackage('tsc', ['-p', 'tsconfig.json'])),
  check('build', () => run(process.execPath, ['scripts/build.mjs'])),
  // These have a script of their own: `npm run peers`.
  vitest('!peers*'),
]);
