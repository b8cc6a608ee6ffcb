// `npm run docs`, at its end: builds the site in dist/site from the pages of the package.
import { cpSync, mkdirSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { ensurePackages } from '../packages.mjs';
import { root, run } from '../run.mjs';
import { images, pages } from './pages.mjs';

const here = 'scripts/site';
ensurePackages(here);
rmSync(join(root, here, 'dist'), { recursive: true, force: true });
for (const [path, text] of pages) {
  const file = join(root, here, 'dist/pages', path);
  mkdirSync(dirname(file), { recursive: true });
  writeFileSync(file, text);
}
for (const image of images) cpSync(join(root, image), join(root, here, 'dist/pages', image));
process.exitCode = run(process.execPath, [`${here}/node_modules/vitepress/bin/vitepress.js`, 'build', here]);
