import { execFile } from 'node:child_process';
import { readFile, symlink } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { expect, test } from 'vitest';
import { temporaryDirectory } from '../support/temporary.ts';

const ROOT = fileURLToPath(new URL('../..', import.meta.url));
const execute = promisify(execFile);

const SOURCES = ['*.ts', '*.mts', '*.mjs'];

/** How a file names another one at run time. The compiler checks imports. */
const NAMED = /new URL\(['"`](\.\.\/[^'"`]*)['"`], import\.meta\.url\)/g;

/** These read what a user of the repository once had to put beside it. */
const WITH_TRANSCRIPTS = [
  ...['compat/transcripts.test.ts', 'test/server/transcripts.test.ts', 'test/server/bridge/transcripts.test.ts'],
];

test('no file of the repository names a file outside of it', async () => {
  const { stdout } = await execute('git', ['ls-files', ...SOURCES], { cwd: ROOT });
  const outside: string[] = [];
  for (const file of stdout.trim().split('\n')) {
    const text = await readFile(join(ROOT, file), 'utf8');
    for (const [, path = ''] of text.matchAll(NAMED))
      if (join(file, '..', path).startsWith('..')) outside.push(`${file}: ${path}`);
  }
  expect(outside).toEqual([]);
});

test('a clone with nothing beside it replays the transcripts of python-etcd', async () => {
  const clone = join(temporaryDirectory(), 'clone');
  await execute('git', ['clone', '--quiet', ROOT, clone]);
  await symlink(join(ROOT, 'node_modules'), join(clone, 'node_modules'));
  const { VITEST: _, ...env } = process.env;
  const args = ['run', '--project=etcd', '--reporter=json', ...WITH_TRANSCRIPTS];
  const run = execute(join(ROOT, 'node_modules/.bin/vitest'), args, { cwd: clone, env, maxBuffer: 2 ** 26 });
  const { stdout } = await run.catch((failure: { stdout: string }) => failure);
  const { numFailedTestSuites, numFailedTests, numPassedTests } = JSON.parse(stdout.slice(stdout.indexOf('{"')));
  expect({ numFailedTestSuites, numFailedTests }).toEqual({ numFailedTestSuites: 0, numFailedTests: 0 });
  expect(numPassedTests).toBeGreaterThan(20);
});
