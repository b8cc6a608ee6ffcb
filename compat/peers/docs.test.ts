// The examples in Go and Java of docs/etcd-v3.md, and docs/start/go-and-v3.md with its part in Go, on the server that was built.
import { execFile } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { expect, inject, onTestFinished, test } from 'vitest';
import { cache } from '../../scripts/peers/cache.mjs';
import { EtcdClient, LockManager } from '../../src/index.ts';
import { entriesBelow } from '../../test/support/gateway.ts';
import { page } from '../../test/support/readme.ts';
import { temporaryDirectory } from '../../test/support/temporary.ts';
import { comparable, follow } from '../../test/support/walkthrough.ts';
import { untilQueued } from './queue.ts';

const MODULE = fileURLToPath(new URL('go/etcd-3.6', import.meta.url));
const LOCK = 'nightly-report';
/** With the flags of `npm run peers`, so that etcd's client is not compiled again. */
const FLAGS = ['-trimpath', '-buildvcs=false'];
const execute = promisify(execFile);

interface Program {
  readonly command: string;
  readonly args: readonly string[];
}

/** Makes a program of the example in this directory. */
type Prepare = (directory: string) => Promise<Program>;

const EXAMPLES: readonly (readonly [language: string, file: string, prepare: Prepare])[] = [
  [
    'go',
    'main.go',
    async (directory) => {
      const program = join(directory, 'main');
      await execute('go', ['build', '-C', MODULE, ...FLAGS, '-o', program, join(directory, 'main.go')]);
      return { command: program, args: [] };
    },
  ],
  [
    'java',
    'Report.java',
    async (directory) => ({
      command: 'java',
      args: ['-cp', `${join(cache, 'jetcd/lib')}/*`, join(directory, 'Report.java')],
    }),
  ],
];

test.each(EXAMPLES)(
  'the example in %s waits for a LockManager, then holds the lock and releases it',
  async (language, file, prepare) => {
    const etcd = inject('servers')['3.6'];
    const [code = '', ...others] = page('docs/etcd-v3.md').blocks.flatMap((block) =>
      block.language === language ? block.code : [],
    );
    expect(others).toEqual([]);
    const directory = temporaryDirectory();
    writeFileSync(join(directory, file), code.replace('http://127.0.0.1:2379', etcd));
    const { command, args } = await prepare(directory);
    const client = new EtcdClient({ endpoints: etcd, api: 'v3' });
    onTestFinished(() => client.close());
    const held = await new LockManager(client).acquire(LOCK);
    const order: string[] = [];
    const example = execute(command, args).then(({ stdout }) => {
      order.push('example');
      return stdout;
    });
    await untilQueued(`/_locks/${LOCK}`, 2, etcd);
    order.push('LockManager');
    await held.release();
    expect(await example).toMatch(/^held/);
    expect(order).toEqual(['LockManager', 'example']);
    expect(await entriesBelow(`/_locks/${LOCK}/`, etcd)).toEqual([]);
  },
);

test('who follows docs/start/go-and-v3.md, with Go, sees what it shows', async () => {
  const { port } = new URL(inject('servers')['3.6']);
  const { stdout: go } = await execute('sh', ['-c', 'command -v go']);
  const steps = await follow(page('docs/start/go-and-v3.md'), {
    ports: { 2379: port },
    // In the module that has etcd's client.
    programs: {
      go: `'${go.trim()}' build -C '${MODULE}' ${FLAGS.join(' ')} -o "$PWD/check" "$PWD/$2" && exec ./check`,
    },
  });
  expect(steps.some(({ code }) => code.includes('go run'))).toBe(true);
  for (const { code, shown, printed } of steps) expect(comparable(printed), code).toBe(comparable(shown));
});
