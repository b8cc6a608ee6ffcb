import { existsSync, readFileSync } from 'node:fs';

const root = new URL('../../', import.meta.url);
const read = (file: string): string => readFileSync(new URL(file, root), 'utf8');

export const readme = read('README.md');

export const packageJson = JSON.parse(read('package.json')) as {
  readonly version: string;
  readonly scripts: Readonly<Record<string, string>>;
  readonly files: readonly string[];
};

/** The fenced code blocks. */
export const blocks = [...readme.matchAll(/^```(\w+)\n([\s\S]*?)^```$/gm)].map(([, language = '', code = '']) => ({
  language,
  code,
}));

export const exists = (file: string): boolean => existsSync(new URL(file, root));

/** Returns the text from `begin` up to `end`. */
export function between(begin: string, end: string): string {
  const from = readme.indexOf(begin);
  const to = readme.indexOf(end, from);
  if (from < 0 || to < 0) throw new Error(`the README has no ${JSON.stringify(from < 0 ? begin : end)}`);
  return readme.slice(from, to);
}

/** The rows of the tables in a text, without header rows; a row is an array of cells. */
export const rowsOf = (text: string): string[][] =>
  [...text.matchAll(/^\| --- .*\n((?:\|.*\n)*)/gm)]
    .flatMap(([, rows = '']) => rows.trimEnd().split('\n'))
    .map((row) =>
      row
        .split('|')
        .slice(1, -1)
        .map((cell) => cell.trim()),
    );

/** The parts of a text in backquotes. */
export const quotedIn = (text = ''): string[] => [...text.matchAll(/`([^`]+)`/g)].map(([, quoted = '']) => quoted);
