// The pages of the site: those that the package contains, with links that lead to other pages of the site.
import { readdirSync, readFileSync } from 'node:fs';
import { extname, join, posix } from 'node:path';
import { root } from '../run.mjs';

const { name } = JSON.parse(read('package.json'));
/** How the README, which has no relative links, names a file of the package. */
const PUBLISHED = `https://unpkg.com/${name}/`;

/** Languages of code blocks, where they differ from the extension of the file. */
const LANGUAGES = { '.mjs': 'js', '.mts': 'ts', '.service': 'ini', '.timer': 'ini', '.yml': 'yaml' };

/** The text of each page, by its path on the site. */
export const pages = new Map(
  ['README.md', 'CHANGELOG.md', ...filesBelow('docs').filter(isText), ...filesBelow('examples')].map((file) => {
    const text = file.startsWith('examples/') ? exampleText(file) : withSiteLinks(read(file), file);
    return [pathOf(file), text];
  }),
);

/** The images on these pages: files of the repository. */
export const images = filesBelow('docs').filter((file) => !isText(file));

/** Returns the path of the page that shows a file of the repository. */
export function pathOf(file) {
  if (file === 'README.md') return 'index.md';
  return file.startsWith('examples/') ? `${file}.md` : file;
}

/** Returns the file of the repository to which a link on a page leads; undefined for one to another site. */
export function fileOf(target, from) {
  const [path] = target.split('#');
  if (path.startsWith(PUBLISHED)) return path.slice(PUBLISHED.length);
  if (/^[a-z]+:/.test(path)) return undefined;
  return path === '' ? from : posix.join(posix.dirname(from), path);
}

function withSiteLinks(text, file) {
  return text.replaceAll(/\]\(([^()\s]+)\)/g, (link, target) => {
    const to = fileOf(target, file);
    if (to === undefined || to === file) return link;
    const [, anchor] = target.split('#');
    const path = posix.relative(posix.dirname(pathOf(file)), pathOf(to));
    return `](./${path}${anchor === undefined ? '' : `#${anchor}`})`;
  });
}

/** A page that shows a file as it is. */
function exampleText(file) {
  const extension = extname(file);
  const language = LANGUAGES[extension] ?? extension.slice(1);
  return `# ${posix.basename(file)}\n\n\`\`\`${language}\n${read(file).trimEnd()}\n\`\`\`\n`;
}

export function read(file) {
  return readFileSync(join(root, file), 'utf8');
}

function isText(file) {
  return !file.endsWith('.webp');
}

function filesBelow(folder) {
  return readdirSync(join(root, folder), { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => posix.relative(root, posix.join(entry.parentPath, entry.name)))
    .sort();
}
