// The links of the README and of docs/ lead somewhere, and the comparison names its sources.
import { readFileSync } from 'node:fs';
import { describe, expect, test } from 'vitest';
import { between, exists, packageJson, page, pages, rowsOf } from '../support/readme.ts';

const README = page('README.md');

test('the README links to each page of docs/, and an index to each page of docs/design/ and docs/cli/', () => {
  const linked = [README, page('docs/design/README.md'), page('docs/cli.md')].flatMap(({ links }) =>
    links.map(({ file }) => file),
  );
  const docs = pages.map(({ file }) => file).filter((file) => file !== README.file);
  expect(docs.length).toBeGreaterThan(5);
  expect(linked).toEqual(expect.arrayContaining(docs));
});

test('the links of the README are absolute, because a package page does not resolve others', () => {
  expect(README.links.length).toBeGreaterThan(20);
  for (const { target } of README.links) expect(target).toMatch(/^https:/);
});

describe.each(pages.filter(({ links }) => links.length > 0))('in $file', ({ links }) => {
  test.each(links)('the link to $target leads to a file of the package, and to a section of it', ({ file, anchor }) => {
    expect(exists(file)).toBe(true);
    const [top = ''] = file.split('/');
    expect(['README.md', ...packageJson.files]).toContain(top);
    if (anchor !== undefined) expect(page(file).anchors).toContain(anchor);
  });
});

describe('the comparison', () => {
  const { text } = page('docs/compare.md');
  const tables = between('docs/compare.md', '## What you have to run', '## Sources')
    .split(/^## .*$/m)
    .map(rowsOf)
    .filter((rows) => rows.length > 0);
  const cells = tables.flat().flatMap(([lock = '', ...values]) => values.map((cell) => ({ lock, cell })));
  const sources = [...text.matchAll(/^- \[(\d+)\] (.*)$/gm)].map(([, number = '', source = '']) => ({
    number,
    source,
  }));
  const citedBy = (cell: string): string[] =>
    [...(/(?: \[\d+\])+$/.exec(cell)?.[0].matchAll(/\d+/g) ?? [])].map(([number]) => number);

  test('has the same ten locks in each table', () => {
    expect(tables.length).toBeGreaterThan(3);
    const [first = []] = tables.map((rows) => rows.map(([lock]) => lock));
    expect(first).toHaveLength(10);
    for (const rows of tables) expect(rows.map(([lock]) => lock)).toEqual(first);
  });

  test.each(cells)('$lock, $cell: has a source', ({ cell }) => {
    const cited = citedBy(cell);
    expect(cited.length).toBeGreaterThan(0);
    expect(sources.map(({ number }) => number)).toEqual(expect.arrayContaining(cited));
  });

  test('names a version and a file or a manual page for each source of others, and uses each source', () => {
    const used = cells.flatMap(({ cell }) => citedBy(cell));
    for (const { number, source } of sources) {
      expect(used).toContain(number);
      if (!source.includes('(guarantees.md)')) expect(source).toMatch(/`[\w./-]+\.\w+`|flock\(1\)/);
    }
  });

  test('names the versions of its locks in its sources', () => {
    const versions = tables.flat().flatMap(([lock = '']) => lock.match(/\d+(?:\.\d+)+/g) ?? []);
    expect(new Set(versions).size).toBe(8);
    for (const version of versions) expect(sources.some(({ source }) => source.includes(version))).toBe(true);
  });

  test('names the version of etcd3 that the bench runs against', () => {
    const { version } = JSON.parse(
      readFileSync(new URL('../../node_modules/etcd3/package.json', import.meta.url), 'utf8'),
    );
    expect(text).toContain(`| npm etcd3 ${version} |`);
  });
});
