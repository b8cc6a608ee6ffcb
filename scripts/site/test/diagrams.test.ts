// Mermaid draws each diagram of the repository, those that are not on the site included.
import { execFileSync } from 'node:child_process';
import { createRequire } from 'node:module';
import { join } from 'node:path';
import type { Mermaid } from 'mermaid';
import type { Page } from 'playwright-core';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { root } from '../../run.mjs';
import { read } from '../pages.mjs';
import { startBrowser } from './browser.ts';

interface Diagram {
  /** File and line where the diagram begins. */
  readonly where: string;
  readonly code: string;
}

function diagramsOf(file: string): Diagram[] {
  const text = read(file);
  return [...text.matchAll(/^```mermaid\n([\s\S]*?)^```$/gm)].map(({ index, 1: code = '' }) => ({
    where: `${file}:${text.slice(0, index).split('\n').length}`,
    code,
  }));
}

const files = execFileSync('git', ['ls-files', '*.md'], { cwd: root, encoding: 'utf8' }).trim().split('\n');
const diagrams = files.flatMap(diagramsOf);

const browser = await startBrowser();
let page: Page;
beforeAll(async () => {
  page = await browser.newPage();
  await page.addScriptTag({ path: join(createRequire(import.meta.url).resolve('mermaid'), '../mermaid.min.js') });
});
afterAll(() => browser.close());

/** Returns the texts of the drawing. */
const draw = (code: string): Promise<string> =>
  page.evaluate(async (code) => {
    const { mermaid } = globalThis as unknown as { mermaid: Mermaid };
    const { svg } = await mermaid.render('diagram', code);
    document.body.innerHTML = svg;
    return document.body.innerText;
  }, code);

test('there are diagrams of the rooms, a lost lock, a hand-over, a fence and a move', () => {
  const pages = diagrams.map(({ where }) => where.replace(/:\d+$/, ''));
  expect(new Set(pages)).toEqual(
    new Set(['ARCHITECTURE.md', 'docs/design/leases.md', 'docs/design/tokens.md', 'docs/start/leaving-v2.md']),
  );
});

test.each(diagrams)('$where is drawn', async ({ code }) => {
  expect(await draw(code)).toMatch(/\w/);
});

test('a mistake in a diagram is an error', async () => {
  await expect(draw('flowchart TD\n  a -->')).rejects.toThrow(/Parse error on line \d/);
});
