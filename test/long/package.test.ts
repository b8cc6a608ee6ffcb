// The package as a user gets it, from a tarball, on every supported line of Node.
import { execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { cpSync, mkdirSync, readdirSync, readFileSync, statSync, symlinkSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { promisify } from 'node:util';
import { gunzipSync } from 'node:zlib';
import { afterAll, beforeAll, describe, expect, inject, onTestFinished, test } from 'vitest';
import { JEST, makeProject, TS_JEST, TYPESCRIPT } from '../support/consumer-projects.ts';
import { type Installed, installPackage } from '../support/installed.ts';
import { freshName, raw } from '../support/locks.ts';
import { exists, packageJson, read } from '../support/readme.ts';
import { temporaryDirectory } from '../support/temporary.ts';

/** The oldest version of each line that package.json supports, those with and without `require` of ES modules, and the newest. */
const versions = ['20.18.1', '20.19.0', '22.0.0', '22', '24'];
/** What the user's project has besides the package. The checks in test/consumer may use it too. */
const packages = [
  // The oldest that package.json accepts; the other tests have the newest.
  '@opentelemetry/api@1.7.0',
  'prom-client@14.0.0',
  'express@5.3.0',
  'fastify@5.12.8',
  'jest@30.5.2',
  'ts-jest@29.4.15',
  'typescript@5.9.3',
  '@types/node@20',
];
/** Programs of a user, which must end with exit code 0 and print nothing on stderr. */
const CHECKS = 'test/consumer';
const checks = readdirSync(CHECKS);
const execute = promisify(execFile);
let installed: Installed;

beforeAll(async () => {
  installed = await installPackage(versions, packages);
  cpSync(CHECKS, installed.dir, { recursive: true });
  makeProject(installed.dir, 'jest', JEST);
  makeProject(installed.dir, 'ts-jest', TS_JEST);
}, 300_000);

afterAll(() => installed.remove());

/** Runs a program of our development dependencies. */
const check = (program: string, ...args: string[]) => execute(join('node_modules/.bin', program), args);

test('the tarball has the build, the docs and the examples, and no development files', () => {
  const tops = new Set(installed.files.map((file) => file.split('/')[0]));
  expect([...tops].sort()).toEqual([
    'CHANGELOG.md',
    'LICENSE',
    'README.md',
    'dist',
    'docs',
    'examples',
    'package.json',
  ]);
  expect(installed.files).toEqual(
    expect.arrayContaining(['dist/cli/main.js', 'dist/index.d.ts', 'docs/cli.md', 'dist/etcd-v2-lock.1.gz']),
  );
});

test('every file of the build has its source: nothing is left of an earlier build', () => {
  const built = installed.files.filter((file) => /^dist\/.*(?<!\.d)\.(?:js|mjs|ts)$/.test(file));
  expect(built.length).toBeGreaterThan(50);
  const sourceOf = (file: string) =>
    file === 'dist/page/page.js' ? 'page/main.tsx' : file.replace('dist/', 'src/').replace(/\.m?js$/, '.ts');
  expect(built.filter((file) => !exists(sourceOf(file)))).toEqual([]);
});

test('publint reports no problems', async () => {
  const { stdout } = await check('publint', 'run', installed.tarball, '--strict');
  expect(stdout).toContain('All good!');
});

test('attw reports no problems with the types of the entry points', async () => {
  const { stdout } = await check('attw', installed.tarball, '--format', 'json');
  const { analysis } = JSON.parse(stdout) as { analysis: { entrypoints: Record<string, unknown> } };
  expect(Object.keys(analysis.entrypoints)).toEqual(
    expect.arrayContaining(Object.keys(packageJson.exports).filter((entry) => entry !== './package.json')),
  );
});

test('the page of ui, with its packages, is smaller than 60 kB', () => {
  const page = installed.files.filter((file) => file.startsWith('dist/page/'));
  expect(page.length).toBeGreaterThan(3);
  const sizes = page.map((file) => statSync(join(installed.dir, 'node_modules/etcd-v2-lock', file)).size);
  expect(sizes.reduce((sum, size) => sum + size, 0)).toBeLessThan(60_000);
});

test('the package has no source maps, and is smaller than 2,000 kB', () => {
  expect(installed.files.filter((file) => file.endsWith('.map'))).toEqual([]);
  const root = join(installed.dir, 'node_modules/etcd-v2-lock');
  const sizes = installed.files.map((file) => statSync(join(root, file)).size);
  expect(sizes.reduce((sum, size) => sum + size, 0)).toBeLessThan(2_000_000);
});

test('a global installation has the man page', async () => {
  const prefix = temporaryDirectory();
  await execute('npm', ['install', '--global', '--prefix', prefix, '--prefer-offline', installed.tarball]);
  const page = gunzipSync(readFileSync(join(prefix, 'share/man/man1/etcd-v2-lock.1.gz')));
  expect(page.toString()).toBe(read('man/etcd-v2-lock.1'));
});

test('only the entry points for prom-client and OpenTelemetry need these packages, and name the missing one', async () => {
  const modules = join(makeProject(temporaryDirectory(), 'bare', {}), 'node_modules');
  mkdirSync(modules);
  const absent = ['@opentelemetry', 'prom-client', 'etcd-v2-lock'];
  for (const name of readdirSync(join(installed.dir, 'node_modules')))
    if (!absent.includes(name)) symlinkSync(join(installed.dir, 'node_modules', name), join(modules, name));
  cpSync(join(installed.dir, 'node_modules/etcd-v2-lock'), join(modules, 'etcd-v2-lock'), { recursive: true });
  const load = (entry: string) => execute('node', ['-e', `require('${entry}')`], { cwd: join(modules, '..') });
  await load('etcd-v2-lock');
  await load('etcd-v2-lock/server');
  await expect(load('etcd-v2-lock/prom-client')).rejects.toThrow("Cannot find module 'prom-client'");
  await expect(load('etcd-v2-lock/opentelemetry')).rejects.toThrow("Cannot find module '@opentelemetry/api'");
});

/** For the older compiler, which takes ten seconds of processor time for each. It resolves `node16` like `nodenext`. */
const FEW = Object.entries(TYPESCRIPT).filter(([module]) => module !== 'node16');

describe.each([
  ['5.9', FEW, () => join(installed.dir, 'node_modules/typescript/bin/tsc')],
  ['7', Object.entries(TYPESCRIPT), () => resolve('node_modules/typescript/bin/tsc')],
] as const)('with TypeScript %s', (version, modules, compiler) => {
  test.concurrent.each(modules)(
    'a program compiles with `module: %s` in strict mode without skipLibCheck, and runs',
    async (module, { files, programs }) => {
      const cwd = makeProject(installed.dir, `${module}-${version}`, files);
      await execute(process.execPath, [compiler(), '-p', '.'], { cwd });
      for (const program of programs) {
        const { stdout } = await execute('node', [program], { cwd, env: installed.on('22.0.0').env });
        expect(stdout).toBe('bigint\n');
      }
    },
    600_000,
  );
});

test('package.json supports no version of Node that is older than those tested', () => {
  const { engines } = packageJson;
  expect(engines.node).toBe('^20.18.1 || >=22.0.0');
  expect(versions).toEqual(expect.arrayContaining(['20.18.1', '22.0.0']));
});

/** Runs the one test of a project. */
async function expectJestToPass(project: string, version: string): Promise<void> {
  const { env } = installed.on(version);
  const jest = join(installed.dir, 'node_modules/jest/bin/jest.js');
  const { stderr } = await execute('node', [jest, '--ci'], { cwd: join(installed.dir, project), env });
  expect(stderr).toMatch(/^Tests: +1 passed, 1 total$/m);
}

// What ts-jest reads, the declarations, does not depend on the version of Node.
test('a test with ts-jest passes', async () => {
  await expectJestToPass('ts-jest', '24');
});

describe.each(versions)('on Node %s', (version) => {
  /** Runs a program; resolves to its stdout, and rejects if it fails. */
  const run = async (program: string, ...args: string[]): Promise<string> => {
    const { cwd, env } = installed.on(version);
    const { stdout } = await execute(program, args, { cwd, env: { ...env, ETCD_ENDPOINTS: inject('etcd') } });
    return stdout;
  };

  test('is that version', async () => {
    expect(`${(await run('node', '--version')).trim()}.`).toMatch(`v${version}.`);
  });

  test.each(checks)('%s ends without an error', async (file) => {
    const { cwd, env } = installed.on(version);
    const { stderr } = await execute('node', [file], { cwd, env: { ...env, ETCD_ENDPOINTS: inject('etcd') } });
    expect(stderr).toBe('');
  });

  test('a test with Jest, without configuration, passes', async () => {
    await expectJestToPass('jest', version);
  });

  test('npx runs the command, which prints its version', async () => {
    expect(await run('npx', 'etcd-v2-lock', '--version')).toBe(`${packageJson.version}\n`);
  });

  test('npx lists the locks of an etcd', async () => {
    const name = freshName();
    const { key } = (await raw('POST', `/_locks/${name}`, { value: 'theirs', ttl: '600' })).body.node;
    onTestFinished(async () => void (await raw('DELETE', key)));
    const [listed] = JSON.parse(await run('npx', 'etcd-v2-lock', 'ls', name, '--json'));
    expect(listed).toMatchObject({ name, holders: [{ key, uuid: 'theirs' }] });
  });

  test('npx runs a command under a lock', async () => {
    const script = 'console.log(process.version, process.env.ETCD_LOCK_NAME)';
    const name = freshName();
    const [node, lockName] = (await run('npx', 'etcd-v2-lock', 'run', name, '--', 'node', '-e', script))
      .trim()
      .split(' ');
    expect(`${node}.`).toMatch(`v${version}.`);
    expect(lockName).toBe(name);
  });

  test('the command serves an etcd', async () => {
    const { cwd, env } = installed.on(version);
    const server = spawn('node_modules/.bin/etcd-v2-lock', ['serve', '--port', '0'], { cwd, env });
    onTestFinished(() => void server.kill('SIGKILL'));
    const [url] = await once(server.stdout, 'data');
    const answer = await fetch(`${String(url).trim()}/v2/keys/`);
    expect(await answer.json()).toEqual({ action: 'get', node: { dir: true } });
    server.kill('SIGTERM');
    expect(await once(server, 'exit')).toEqual([143, null]);
  });
});
