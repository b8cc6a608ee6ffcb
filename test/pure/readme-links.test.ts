// The README is short, its links and those of docs/ lead somewhere, and its comparison names its sources.
import { readFileSync } from 'node:fs';
import { describe, expect, test } from 'vitest';
import { between, exists, packageJson, page, pages, rowsOf } from '../support/readme.ts';

const README = page('README.md');

test('the README has at most 160 lines', () => {
  expect(README.text.split('\n').length - 1).toBeLessThanOrEqual(160);
});

test('the README links to each page of docs/', () => {
  const linked = README.links.map(({ file }) => file);
  const docs = pages.map(({ file }) => file).filter((file) => file !== README.file);
  expect(docs.length).toBeGreaterThan(5);
  expect(linked).toEqual(expect.arrayContaining(docs));
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
  const SIGN = /[¹²³⁴⁵⁶⁷⁸⁹]/gu;
  const comparison = between('README.md', '## Compared', 'Sources,');
  const [, head = ''] = /^(\|.*\|)$/m.exec(comparison) ?? [];
  const rows = rowsOf(comparison);
  const cells = rows.flatMap(([property = '', ...values]) => values.map((cell) => ({ property, cell })));
  const sources = between('README.md', 'Sources,', '\n## ').match(/[¹²³⁴⁵⁶⁷⁸⁹] [^¹²³⁴⁵⁶⁷⁸⁹]+/gu) ?? [];

  test('has a cell for each property of each lock', () => {
    const columns = head.split('|').length - 2;
    expect(columns).toBe(7);
    expect(rows.map((row) => row.length)).toEqual(rows.map(() => columns));
  });

  test.each(cells)('$property, $cell: has a source', ({ cell }) => {
    const cited = / ([¹²³⁴⁵⁶⁷⁸⁹ ]+)$/u.exec(cell)?.[1]?.split(' ') ?? [];
    expect(cited.length).toBeGreaterThan(0);
    for (const sign of cited) expect(sources.filter((source) => source.startsWith(sign))).toHaveLength(1);
  });

  test('names a file or a manual page for each source, and uses each source', () => {
    const used = cells.flatMap(({ cell }) => cell.match(SIGN) ?? []);
    for (const source of sources) {
      expect(source).toMatch(/`[\w./-]+\.\w+`|\.md\)|flock\(1\)/);
      expect(used).toContain(source[0]);
    }
  });

  test('names the same versions in its head and in its sources', () => {
    const versions = head.match(/\d+\.\d+\.\d+/g) ?? [];
    expect(versions).toHaveLength(5);
    for (const version of versions) expect(sources.some((source) => source.includes(version))).toBe(true);
  });

  test('names the version of etcd3 that the bench runs against', () => {
    const { version } = JSON.parse(
      readFileSync(new URL('../../node_modules/etcd3/package.json', import.meta.url), 'utf8'),
    );
    expect(head).toContain(`etcd3 ${version}`);
  });
});
