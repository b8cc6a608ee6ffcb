// `npm run build`: compiles src to CommonJS in dist, and adds an ES module for each entry point.
import { mkdtempSync, readdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import { root, runPackage } from './run.mjs';

const ENTRIES = ['index', 'server/index'];

// The build replaces dist at once, so that programs which use it at that time do not find half of it.
const dist = join(root, 'dist');
const made = mkdtempSync(join(root, 'node_modules/.dist-'));
const built = join(made, 'new');
try {
  process.exitCode =
    compile('--emitDeclarationOnly') || compile('--declaration', 'false', '--removeComments', '--noCheck');
  if (process.exitCode === 0) complete();
} finally {
  rmSync(made, { recursive: true });
}

/** Only the declarations keep comments, which editors show: the code has none, which makes the package a sixth smaller. */
function compile(...options) {
  return runPackage('tsc', ['-p', 'tsconfig.build.json', '--outDir', built, ...options]);
}

function complete() {
  writeFileSync(join(built, 'package.json'), '{ "type": "commonjs" }\n');
  for (const entry of ENTRIES) wrap(join(built, entry));
  removeInternalDeclarations();
  rename(dist, join(made, 'old'));
  renameSync(built, dist);
}

/** Writes an ES module with the named exports of a CommonJS module. It has no state: both ways of loading share one copy. */
function wrap(entry) {
  const names = Object.keys(createRequire(import.meta.url)(`${entry}.js`));
  const file = `./${entry.split('/').at(-1)}.js`;
  writeFileSync(`${entry}.mjs`, `export { ${names.join(', ')} } from '${file}';\n`);
  writeFileSync(`${entry}.d.mts`, `export * from '${file}';\n`);
}

/** Removes the declarations that no entry point leads to. */
function removeInternalDeclarations() {
  const reached = new Set();
  const reach = (file) => {
    if (reached.has(file)) return;
    reached.add(file);
    for (const [, target] of readFileSync(file, 'utf8').matchAll(/(?:from |import\()['"](\.[^'"]+)\.(?:js|ts)['"]/g))
      reach(join(dirname(file), `${target}.d.ts`));
  };
  for (const entry of ENTRIES) reach(join(built, `${entry}.d.ts`));
  for (const file of readdirSync(built, { recursive: true }).map((name) => join(built, name)))
    if (file.endsWith('.d.ts') && !reached.has(file)) rmSync(file);
}

/** Renames a directory if it exists. */
function rename(from, to) {
  try {
    renameSync(from, to);
  } catch (error) {
    if (error.code !== 'ENOENT') throw error;
  }
}
