import { execFile } from 'node:child_process';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { expect, onTestFinished, test } from 'vitest';
import { makeDataDir, removeDataDir } from '../../support/data-dir.ts';
import { startNode } from '../../support/script.ts';

const execute = promisify(execFile);

const root = new URL('../../../', import.meta.url);
const read = (file: string): string => readFileSync(new URL(file, root), 'utf8');
const commandPages = readdirSync(new URL('docs/cli', root));

test('docs/cli.md, docs/cli/ and the man page are the output of `npm run docs`', async () => {
  const dir = makeDataDir();
  onTestFinished(() => removeDataDir(dir));
  const { code, stderr } = await startNode(['scripts/cli-docs.mjs', dir]).result;
  expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
  expect(readdirSync(join(dir, 'docs/cli'))).toEqual(commandPages);
  for (const file of ['docs/cli.md', 'man/etcd-v2-lock.1', ...commandPages.map((name) => `docs/cli/${name}`)])
    expect(read(file), `${file} is out of date: run "npm run docs"`).toBe(readFileSync(join(dir, file), 'utf8'));
});

test('man shows the man page without a warning, with all chapters of docs/cli.md', async () => {
  const { stdout, stderr } = await execute('man', ['--warnings', '--local-file', 'man/etcd-v2-lock.1'], {
    env: { ...process.env, LC_ALL: 'C.UTF-8', MANWIDTH: '120' },
  });
  expect(stderr).toBe('');
  const chapters = [...read('docs/cli.md').matchAll(/^## (.*)$/gm)].map(([, title]) => title);
  expect(chapters.length).toBeGreaterThan(5);
  // In docs/cli, the page of each command has its usage.
  const all = chapters.toSpliced(1, 0, 'SYNOPSIS');
  expect(stdout.split('\n').filter((line) => /^[A-Z][A-Z ]+$/.test(line))).toEqual(all);
  // Characters that roff would read as its own. Text is justified with spaces.
  const text = stdout.replace(/\s+/g, ' ');
  expect(text).toContain('A terminal sends ^C and ^\\ to the command itself.');
  expect(text).toContain("Exits with the command's exit code.");
  expect(text).toContain('print {"url":"http://127.0.0.1:…","pid":…}');
});

test.each(commandPages)('the page %s has usage, operands or options, and exit codes', (page) => {
  const name = page.replace('.md', '');
  const text = read(`docs/cli/${page}`);
  expect(text).toContain(`\netcd-v2-lock ${name} [options]`);
  expect(text).toMatch(/^- `.*`: \S/m);
  expect(text).toMatch(/^Exit codes:\n\n```text\n0 /m);
});
