import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { dirname, join, normalize } from 'node:path';

const root = new URL('../../', import.meta.url);
/** Returns the text of a file of the package. */
export const read = (file: string): string => readFileSync(new URL(file, root), 'utf8');

export const packageJson = JSON.parse(read('package.json')) as {
  readonly name: string;
  readonly version: string;
  readonly scripts: Readonly<Record<string, string>>;
  readonly files: readonly string[];
  readonly engines: { readonly node: string };
};

/** A fenced code block. */
export interface Block {
  /** The page it is on. */
  readonly file: string;
  readonly language: string;
  readonly code: string;
}

/** The README, or a page of docs/. */
export interface Page {
  /** Its path in the repository. */
  readonly file: string;
  readonly text: string;
  readonly blocks: readonly Block[];
  /** Targets of its links to other files and to sections. */
  readonly links: readonly Link[];
  /** Anchors of its sections, as GitHub names them. */
  readonly anchors: readonly string[];
}

export interface Link {
  readonly text: string;
  /** As written. */
  readonly target: string;
  /** Path in the repository. */
  readonly file: string;
  /** Section; undefined for the whole file. */
  readonly anchor: string | undefined;
}

const CODE = /^```(\w+)\n([\s\S]*?)^```$/gm;

/** Reads a page. */
export function pageOf(file: string): Page {
  const text = read(file);
  const prose = text.replaceAll(CODE, '');
  return {
    file,
    text,
    blocks: [...text.matchAll(CODE)].map(([, language = '', code = '']) => ({ file, language, code })),
    links: [...prose.matchAll(/(?:\[([^[\]]*))?\]\(([^)\s]+)\)/g)]
      .filter(([, , target = '']) => !/^https?:/.test(target))
      .map(([, text = '', target = '']) => linkOf(file, text, target)),
    anchors: [...prose.matchAll(/^#+ (.*)$/gm)].map(([, title = '']) => anchorOf(title)),
  };
}

function linkOf(from: string, text: string, target: string): Link {
  const [path = '', anchor] = target.split('#');
  return { text, target, anchor, file: path === '' ? from : normalize(join(dirname(from), path)) };
}

const anchorOf = (title: string): string =>
  title
    .toLowerCase()
    .replaceAll(/[^\p{L}\p{N}_ -]/gu, '')
    .replaceAll(' ', '-');

/** The README and the pages of docs/ that are written by hand, and the manual of the command line. */
export const pages: readonly Page[] = [
  'README.md',
  ...readdirSync(new URL('docs/', root))
    .filter((name) => name.endsWith('.md'))
    .map((name) => `docs/${name}`),
].map(pageOf);

/** Returns a page by its path in the repository. */
export function page(file: string): Page {
  const found = pages.find((one) => one.file === file);
  if (!found) throw new Error(`there is no page ${file}`);
  return found;
}

/** The code blocks of all pages. */
export const blocks: readonly Block[] = pages.flatMap((one) => one.blocks);

export const exists = (file: string): boolean => existsSync(new URL(file, root));

/** Returns the text of a page from `begin` up to `end`. */
export function between(file: string, begin: string, end: string): string {
  const { text } = page(file);
  const from = text.indexOf(begin);
  const to = text.indexOf(end, from);
  if (from < 0 || to < 0) throw new Error(`${file} has no ${JSON.stringify(from < 0 ? begin : end)}`);
  return text.slice(from, to);
}

/** The rows of the tables in a text, without header rows; a row is an array of cells. */
export const rowsOf = (text: string): string[][] =>
  [...text.matchAll(/^\| --- .*\n((?:\|.*\n?)*)/gm)]
    .flatMap(([, rows = '']) => rows.trimEnd().split('\n'))
    .map((row) =>
      row
        .split('|')
        .slice(1, -1)
        .map((cell) => cell.trim()),
    );

/** The parts of a text in backquotes. */
export const quotedIn = (text = ''): string[] => [...text.matchAll(/`([^`]+)`/g)].map(([, quoted = '']) => quoted);
