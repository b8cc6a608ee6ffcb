// `npm run build`: compiles src to CommonJS in dist, and adds an ES module for each entry point, the man page, and the page of `ui`.
import {
  copyFileSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import { gzipSync } from 'node:zlib';
import { rolldown } from 'rolldown';
import { root, runPackage } from './run.mjs';

const ENTRIES = ['index', 'server/index', 'metrics/prom-client', 'metrics/opentelemetry', 'python/index'];

const dist = join(root, 'dist');
const made = mkdtempSync(join(root, 'node_modules/.dist-'));
const built = join(made, 'new');
try {
  process.exitCode =
    compile('--emitDeclarationOnly') || compile('--declaration', 'false', '--removeComments', '--noCheck');
  if (process.exitCode === 0) await complete();
} finally {
  rmSync(made, { recursive: true });
}

/** Only the declarations keep comments, which editors show: the code has none, which makes the package a sixth smaller. */
function compile(...options) {
  return runPackage('tsc', ['-p', 'tsconfig.build.json', '--outDir', built, ...options]);
}

async function complete() {
  writeFileSync(join(built, 'package.json'), '{ "type": "commonjs" }\n');
  for (const file of readdirSync(built, { recursive: true }))
    if (file.endsWith('.js')) removeNamespaceHelpers(join(built, file));
  for (const entry of ENTRIES) wrap(join(built, entry));
  removeInternalDeclarations();
  // As manuals are installed: npm links it into the directory of `man`.
  writeFileSync(
    join(built, 'etcd-v2-lock.1.gz'),
    gzipSync(readFileSync(join(root, 'man/etcd-v2-lock.1')), { level: 9 }),
  );
  await bundlePage();
  replaceDist();
}

/** Bundles the page of `ui` with the packages that it uses. */
async function bundlePage() {
  const to = join(built, 'page');
  const bundled = await rolldown({ input: join(root, 'page/main.tsx'), platform: 'browser' });
  await bundled.write({ file: join(to, 'page.js'), format: 'es', minify: true, codeSplitting: false });
  await bundled.close();
  for (const name of ['index.html', 'page.css', 'icon.svg']) copyFileSync(join(root, 'page', name), join(to, name));
}

/** Replaces dist file by file, so that a program which loads it meanwhile finds each file. */
function replaceDist() {
  mkdirSync(dist, { recursive: true });
  const names = new Set(readdirSync(built, { recursive: true }));
  for (const name of names)
    if (statSync(join(built, name)).isDirectory()) mkdirSync(join(dist, name), { recursive: true });
    else renameSync(join(built, name), join(dist, name));
  for (const name of readdirSync(dist, { recursive: true }))
    if (!names.has(name)) rmSync(join(dist, name), { recursive: true, force: true });
}

/**
 * Removes what TypeScript adds to each file with `import * as`: it makes namespaces of foreign CommonJS modules, and would be a fortieth
 * of the package. Those of our own modules are what `require` returns.
 */
function removeNamespaceHelpers(file) {
  const code = readFileSync(file, 'utf8');
  const [helpers] = /^var __createBinding = [\s\S]*?^var __importStar = [\s\S]*?^\}\)\(\);\n/m.exec(code) ?? [];
  if (helpers === undefined) return;
  const rest = code.replace(helpers, '').replaceAll(/__importStar\((require\("\.[^"]+"\))\)/g, '$1');
  if (/__(?:createBinding|importStar)\b/.test(rest)) throw new Error(`${file} needs the helpers of TypeScript`);
  writeFileSync(file, rest);
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
