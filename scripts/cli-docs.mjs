// `npm run docs`: writes docs/cli.md, docs/cli/ and man/etcd-v2-lock.1, below the given directory, from the help texts of the built CLI.
import { mkdirSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { chapters } from './manual/chapters.mjs';
import { pagesOf } from './manual/markdown.mjs';
import { roffOf } from './manual/roff.mjs';
import { root } from './run.mjs';

const [directory = root] = process.argv.slice(2);
rmSync(join(directory, 'docs/cli'), { recursive: true, force: true });
for (const [name, text] of Object.entries(pagesOf(chapters))) write(`docs/${name}`, text);
write('man/etcd-v2-lock.1', roffOf(chapters));

function write(name, text) {
  const file = join(directory, name);
  mkdirSync(dirname(file), { recursive: true });
  writeFileSync(file, text);
}
