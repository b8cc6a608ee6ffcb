// `npm run docs`: writes docs/api, or the given directory, from the docstrings in the declarations of the build.
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { root, run } from '../run.mjs';

const ENTRIES = [
  'index.d.ts',
  'server/index.d.ts',
  'metrics/prom-client.d.ts',
  'metrics/opentelemetry.d.ts',
  'python/index.d.ts',
];

const [out = join(root, 'docs/api')] = process.argv.slice(2);
const dist = join(root, 'dist');
const here = join(root, 'scripts/api-docs');
const copy = mkdtempSync(join(tmpdir(), 'etcd-v2-lock-declarations-'));
try {
  for (const file of readdirSync(dist, { recursive: true })) if (file.endsWith('.d.ts')) copyDeclarations(file);
  writeFileSync(join(copy, 'package.json'), readFileSync(join(dist, 'package.json')));
  const entries = ENTRIES.map((file) => join(copy, file));
  const tsconfig = join(copy, 'tsconfig.json');
  const compilerOptions = { paths: { '*': [join(root, 'node_modules/*')] } };
  writeFileSync(tsconfig, JSON.stringify({ extends: join(here, 'tsconfig.json'), compilerOptions, files: entries }));
  const settings = ['--options', join(here, 'typedoc.json'), '--tsconfig', tsconfig, '--out', out];
  process.exitCode = run(process.execPath, [join(here, 'node_modules/typedoc/bin/typedoc'), ...settings, ...entries]);
} finally {
  rmSync(copy, { recursive: true });
}

/** Copies a file, with the types of errors as text: TypeDoc leaves out `{types}` in docstrings. */
function copyDeclarations(file) {
  const source = readFileSync(join(dist, file), 'utf8');
  mkdirSync(dirname(join(copy, file)), { recursive: true });
  writeFileSync(join(copy, file), source.replaceAll(/@throws \{([^}]+)\}/g, '@throws `$1`'));
}
