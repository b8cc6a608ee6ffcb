// The package as a user gets it, from a tarball, on every supported line of Node.
import { execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, inject, onTestFinished, test } from 'vitest';
import { type Installed, installPackage, lend } from './support/installed.ts';
import { freshName, raw } from './support/locks.ts';
import { packageJson } from './support/readme.ts';
import { COMPILE, strictTsconfig } from './support/user-project.ts';

/** The oldest version that package.json supports, and the newest of the later lines. */
const versions = ['20.19.0', '22', '24'];
const execute = promisify(execFile);
let installed: Installed;

beforeAll(async () => {
  installed = await installPackage(versions);
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
  expect(installed.files).toEqual(expect.arrayContaining(['dist/cli/main.js', 'dist/index.d.ts', 'docs/cli.md']));
});

test('publint reports no problems', async () => {
  const { stdout } = await check('publint', 'run', installed.tarball, '--strict');
  expect(stdout).toContain('All good!');
});

test('attw reports no problems with the types of the entry points', async () => {
  const { stdout } = await check('attw', installed.tarball, '--profile', 'esm-only', '--format', 'json');
  const { analysis } = JSON.parse(stdout) as { analysis: { entrypoints: Record<string, unknown> } };
  expect(Object.keys(analysis.entrypoints)).toEqual(expect.arrayContaining(['.', './server']));
});

test('the type declarations of both entry points compile in strict mode without skipLibCheck', async () => {
  for (const name of ['typescript', '@types/node']) lend(installed.dir, name);
  const source = "export * from 'etcd-v2-lock'; export { EmbeddedEtcd } from 'etcd-v2-lock/server';";
  writeFileSync(join(installed.dir, 'all.mts'), source);
  writeFileSync(join(installed.dir, 'tsconfig.json'), strictTsconfig());
  await execute(process.execPath, COMPILE, { cwd: installed.dir });
});

describe.each(versions)('on Node %s', (version) => {
  /** Runs a program; resolves to its stdout, and rejects if it fails. */
  const run = async (program: string, ...args: string[]): Promise<string> => {
    const { cwd, env } = installed.on(version);
    const { stdout } = await execute(program, args, { cwd, env: { ...env, ETCD_ENDPOINTS: inject('etcd') } });
    return stdout;
  };

  test.each([
    ['import', "import * as api from 'etcd-v2-lock'; import * as server from 'etcd-v2-lock/server';"],
    ['require', "const [api, server] = ['etcd-v2-lock', 'etcd-v2-lock/server'].map((name) => require(name));"],
  ])('%s loads both entry points', async (way, loading) => {
    const file = join(installed.dir, way === 'import' ? 'load.mjs' : 'load.cjs');
    writeFileSync(file, `${loading} console.log(process.version, typeof api.Lock, typeof server.EmbeddedEtcd.start);`);
    const [node, ...types] = (await run('node', file)).trim().split(' ');
    expect(`${node}.`).toMatch(`v${version}.`);
    expect(types).toEqual(['function', 'function']);
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
