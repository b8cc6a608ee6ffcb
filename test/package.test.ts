// The package as a user gets it, from a tarball, on each Node it promises to work on.
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

/** The oldest that package.json promises, and the newest of the lines that users have. */
const versions = ['20.19.0', '22', '24'];
const execute = promisify(execFile);
let installed: Installed;

beforeAll(async () => {
  installed = await installPackage(versions);
}, 300_000);

afterAll(() => installed.remove());

/** One of our own programs, on the tarball. */
const check = (program: string, ...args: string[]) => execute(join('node_modules/.bin', program), args);

test('the tarball has what is built and what is to be read, and nothing of the making', () => {
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

test('publint finds nothing to say', async () => {
  const { stdout } = await check('publint', 'run', installed.tarball, '--strict');
  expect(stdout).toContain('All good!');
});

test('its types are right for all who import it', async () => {
  const { stdout } = await check('attw', installed.tarball, '--profile', 'esm-only', '--format', 'json');
  const { analysis } = JSON.parse(stdout) as { analysis: { entrypoints: Record<string, unknown> } };
  expect(Object.keys(analysis.entrypoints)).toEqual(expect.arrayContaining(['.', './server']));
});

test('its declarations, and those they are made of, satisfy the strictest compiler', async () => {
  for (const name of ['typescript', '@types/node']) lend(installed.dir, name);
  const source = "export * from 'etcd-v2-lock'; export { EmbeddedEtcd } from 'etcd-v2-lock/server';";
  writeFileSync(join(installed.dir, 'all.mts'), source);
  writeFileSync(join(installed.dir, 'tsconfig.json'), strictTsconfig());
  await execute(process.execPath, COMPILE, { cwd: installed.dir });
});

describe.each(versions)('on Node %s', (version) => {
  /** What it printed; it must have ended well. */
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

  test('npx finds the command, which knows its version', async () => {
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
    const tell = 'console.log(process.version, process.env.ETCD_LOCK_NAME)';
    const name = freshName();
    const [node, told] = (await run('npx', 'etcd-v2-lock', 'run', name, '--', 'node', '-e', tell)).trim().split(' ');
    expect(`${node}.`).toMatch(`v${version}.`);
    expect(told).toBe(name);
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
