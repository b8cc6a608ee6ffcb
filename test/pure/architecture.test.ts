// The pages for those who change the package agree with the source.
import { readdirSync, statSync } from 'node:fs';
import { dirname, join, relative } from 'node:path';
import { fileURLToPath } from 'node:url';
import { describe, expect, test } from 'vitest';
import { exists, packageJson, pageOf, read, rowsOf } from '../support/readme.ts';

const root = fileURLToPath(new URL('../..', import.meta.url));
const src = join(root, 'src');
const MAP = pageOf('ARCHITECTURE.md');
const GUIDE = pageOf('CONTRIBUTING.md');

describe.each([MAP, GUIDE, pageOf('SECURITY.md')])('in $file', ({ links }) => {
  test.each(links)('the link $text to $target leads to a file that has what it names', ({ text, file, anchor }) => {
    expect(exists(file)).toBe(true);
    if (anchor !== undefined) expect(pageOf(file).anchors).toContain(anchor);
    if (statSync(join(root, file)).isDirectory()) return;
    const [, name] = /^`([\w.]+)(?:\(\))?`$/.exec(text) ?? [];
    if (name !== undefined) expect(read(file).split(/[^\w$]+/)).toContain(name);
    const [, title] = /^"(.*)"$/.exec(text) ?? [];
    if (title !== undefined) expect(read(file)).toContain(title);
  });
});

const entries = readdirSync(src, { withFileTypes: true });

test('the table of rooms has exactly the folders of src', () => {
  const [, table = ''] = /^(\| room [\s\S]*?)\n\n/m.exec(MAP.text) ?? [];
  const folders = entries.filter((entry) => entry.isDirectory()).map(({ name }) => `\`${name}/\``);
  expect(
    rowsOf(table)
      .map(([room]) => room)
      .sort(),
  ).toEqual(folders.sort());
});

/** The room of a file, or the name of a file beside the rooms. */
const roomOf = (file: string): string => (file.split('/')[0] ?? '').replace(/\.ts$/, '');

/** The arrows between rooms, as "from --> to". */
function arrowsOfSource(): Set<string> {
  const arrows = new Set<string>();
  for (const path of readdirSync(src, { recursive: true, encoding: 'utf8' })) {
    const file = path.replaceAll('\\', '/');
    if (!file.endsWith('.ts')) continue;
    for (const [, target = ''] of read(`src/${file}`).matchAll(/\b(?:from|import)\s*\(?\s*'(\.[^']*)'/g))
      arrows.add(`${roomOf(file)} --> ${roomOf(relative(src, join(src, dirname(file), target)))}`);
  }
  return arrows;
}

/** The arrows of the diagram, which does not draw those to the rooms that every file may import. */
function arrowsOfDiagram(): string[] {
  const [, diagram = ''] = /^```mermaid\n([\s\S]*?)^```/m.exec(MAP.text) ?? [];
  return [...diagram.matchAll(/^ *(\w+) --> (.*)$/gm)].flatMap(([, from, to = '']) =>
    to.split(' & ').map((one) => `${from} --> ${one}`),
  );
}

test('the diagram has exactly the arrows of the imports, types included', () => {
  const isDrawn = (arrow: string): boolean => {
    const [from, to = ''] = arrow.split(' --> ');
    return from !== to && !['base', 'errors'].includes(to);
  };
  const real = [...arrowsOfSource()].filter(isDrawn).sort();
  expect(real.length).toBeGreaterThan(10);
  expect(arrowsOfDiagram().sort()).toEqual(real);
});

test('the latest release in CHANGELOG.md has a date, and the version of package.json and package-lock.json', () => {
  const [latest = ''] = [...read('CHANGELOG.md').matchAll(/^## (?!Unreleased$)(.*)$/gm)].map(([, title]) => title);
  expect(latest).toMatch(/^\d+\.\d+\.\d+ \(\d{4}-\d\d-\d\d\)$/);
  expect(latest.split(' ')[0]).toBe(packageJson.version);
  const { version, packages } = JSON.parse(read('package-lock.json'));
  expect([version, packages[''].version]).toEqual([packageJson.version, packageJson.version]);
});

test('CONTRIBUTING.md names exactly the scripts of package.json, without those that npm runs by itself', () => {
  const named = [...GUIDE.text.matchAll(/`npm (?:run ([\w:-]+)|test\b)/g)].map(([, script = 'test']) => script);
  const scripts = Object.keys(packageJson.scripts).filter((script) => script !== 'prepack');
  expect([...new Set(named)].sort()).toEqual(scripts.sort());
});
