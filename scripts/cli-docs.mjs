// `npm run docs`: writes docs/cli.md and man/etcd-v2-lock.1, below the given directory, from the help texts of the built CLI.
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { chapters } from './manual/chapters.mjs';
import { markdownOf } from './manual/markdown.mjs';
import { roffOf } from './manual/roff.mjs';
import { root } from './run.mjs';

const [directory = root] = process.argv.slice(2);
write('docs', 'cli.md', markdownOf(chapters));
write('man', 'etcd-v2-lock.1', roffOf(chapters));

function write(folder, name, text) {
  mkdirSync(join(directory, folder), { recursive: true });
  writeFileSync(join(directory, folder, name), text);
}
