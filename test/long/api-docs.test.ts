import { readdirSync, readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { startNode } from '../support/script.ts';
import { temporaryDirectory } from '../support/temporary.ts';

/** The files of a directory and their contents. */
const contentsOf = (dir: string): Record<string, string> =>
  Object.fromEntries(
    readdirSync(dir, { recursive: true, encoding: 'utf8' })
      .filter((file) => statSync(join(dir, file)).isFile())
      .map((file) => [file, readFileSync(join(dir, file), 'utf8')]),
  );

// TypeDoc fails if a public member has no docstring, or names a type that is not exported.
test('docs/api is the output of `npm run docs`, and documents every public member', async () => {
  const made = join(temporaryDirectory(), 'api');
  const { code, stderr } = await startNode(['scripts/api-docs/main.mjs', made]).result;
  expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
  expect(contentsOf('docs/api'), 'docs/api is out of date: run "npm run docs"').toEqual(contentsOf(made));
});
