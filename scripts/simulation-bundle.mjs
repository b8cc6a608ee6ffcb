// Bundles the programs of the simulation.
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { rolldown } from 'rolldown';
import { root } from './run.mjs';

const TRANSPORT = join(root, 'src/http/transport.ts');
const IN_MEMORY = join(root, 'test/simulation/client/transport.ts');

/** Limits that a world of a minute would not reach otherwise. */
const SMALLER = [
  {
    file: 'src/v3/locks/entry-keys.ts',
    from: 'const SINGLE_USE_KEYS = 50;',
    to: 'const SINGLE_USE_KEYS = 1;',
  },
];

/** Writes the programs of the simulation to a directory. @param bugs those to plant in the clients */
export async function writePrograms(directory, bugs = []) {
  const edits = bugs.flatMap(({ edits: several, ...one }) => several ?? [one]);
  await Promise.all([
    write(join(directory, 'main.cjs'), 'test/simulation/main.ts'),
    write(join(directory, 'client.cjs'), 'test/simulation/client/entry.ts', {
      inMemory: true,
      edits: [...SMALLER, ...edits],
    }),
    write(join(directory, 'bridge.cjs'), 'test/simulation/client/bridge.ts', { inMemory: true }),
    write(join(directory, 'etcd.cjs'), 'test/simulation/cluster/server.ts'),
  ]);
}

const write = async (file, entry, options) => writeFileSync(file, await bundle(entry, file, options));

/**
 * Returns a program as one CommonJS module.
 * @param entry the file that it starts with
 * @param file where the code will be: its source map refers to that
 * @param inMemory whether it has a network in memory in place of undici's sockets
 * @param edits texts to replace in files of the project: `file`, `from`, `to`
 */
async function bundle(entry, file, { inMemory = false, edits = [] } = {}) {
  const plugin = {
    name: 'simulation',
    async resolveId(source, importer) {
      if (!inMemory || importer === IN_MEMORY || !source.endsWith('/transport.ts')) return undefined;
      const resolved = await this.resolve(source, importer, { skipSelf: true });
      return resolved?.id === TRANSPORT ? IN_MEMORY : resolved;
    },
    transform(code, id) {
      const planted = edits.filter(({ file }) => id === join(root, file));
      return planted.length === 0 ? undefined : { code: planted.reduce(plant, code), map: null };
    },
  };
  const bundled = await rolldown({
    input: join(root, entry),
    platform: 'node',
    external: [/^node:/, 'undici', 'debug', 'croner'],
    plugins: [plugin],
  });
  const { output } = await bundled.generate({ file, format: 'cjs', sourcemap: 'inline', codeSplitting: false });
  await bundled.close();
  return output[0].code;
}

function plant(code, { file, from, to }) {
  if (code.split(from).length !== 2) throw new Error(`${file} must contain this text once: ${from}`);
  return code.replace(from, () => to);
}
