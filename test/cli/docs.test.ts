import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { makeDataDir, removeDataDir } from '../support/data-dir.ts';
import { startNode } from '../support/script.ts';

test('docs/cli.md is the output of `npm run docs`', async () => {
  const dir = makeDataDir();
  onTestFinished(() => removeDataDir(dir));
  const made = join(dir, 'cli.md');
  const { code, stderr } = await startNode(['scripts/cli-docs.mjs', made]).result;
  expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
  const checkedIn = readFileSync(new URL('../../docs/cli.md', import.meta.url), 'utf8');
  expect(checkedIn, 'docs/cli.md is out of date: run "npm run docs"').toBe(readFileSync(made, 'utf8'));
});

test('the manual has usage, options and exit codes for each command', async () => {
  const manual = readFileSync(new URL('../../docs/cli.md', import.meta.url), 'utf8');
  const [, chapters = ''] = /^## COMMANDS$([\s\S]*?)^## /m.exec(manual) ?? [];
  const commands = chapters.split(/^### /m).slice(1);
  expect(commands.length).toBeGreaterThan(0);
  for (const chapter of commands) {
    const [name = ''] = chapter.split('\n');
    expect(chapter, name).toContain(`\netcd-v2-lock ${name} [options]`);
    expect(chapter, name).toMatch(/^- `-.*`: \S/m);
    expect(chapter, name).toMatch(/^Exit codes:\n\n```text\n0 /m);
  }
});
