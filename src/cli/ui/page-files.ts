import { readFileSync } from 'node:fs';
import { join } from 'node:path';

/** A file of the page, as a browser gets it. */
export interface PageFile {
  readonly type: string;
  readonly content: Buffer;
}

/** Where `npm run build` has put them. */
const DIRECTORY = join(__dirname, '../../../dist/page');

const FILES = [
  ['/', 'index.html', 'text/html; charset=utf-8'],
  ['/page.js', 'page.js', 'text/javascript; charset=utf-8'],
  ['/page.css', 'page.css', 'text/css; charset=utf-8'],
  ['/icon.svg', 'icon.svg', 'image/svg+xml'],
] as const;

/** Returns the files of the page, by their path on the server. */
export const readPage = (): ReadonlyMap<string, PageFile> =>
  new Map(FILES.map(([path, file, type]) => [path, { type, content: readFileSync(join(DIRECTORY, file)) }]));
