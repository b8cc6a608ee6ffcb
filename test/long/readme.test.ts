// Every snippet of the README and of docs/ is executed. start-pages.test.ts does the same for docs/start/.
import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { describe, expect, inject, onTestFinished, test } from 'vitest';
import { EtcdClient, LockManager } from '../../src/index.ts';
import { EmbeddedEtcd } from '../../src/server/index.ts';
import { makeAuthority } from '../support/certificates.ts';
import { startEtcd } from '../support/etcd.ts';
import { entriesBelow } from '../support/gateway.ts';
import { raw } from '../support/locks.ts';
import { type Block, blocks, isGenerated, packageJson, pages } from '../support/readme.ts';
import { runScript, startNode } from '../support/script.ts';
import { APP, guard, useTlsEtcd } from '../support/secured-etcd.ts';
import { runInShell } from '../support/shell.ts';
import { until } from '../support/until.ts';
import { COMPILE, runInUserProject, strictTsconfig } from '../support/user-project.ts';
import { comparable } from '../support/walkthrough.ts';

/** The file name in the first line of a snippet. */
const nameOf = (code: string): string | undefined =>
  /^\/\/ (\S+\.js)$/m.exec(code.slice(0, code.indexOf('\n') + 1))?.[1];

const own = blocks.filter(({ file }) => !file.startsWith('docs/start/'));
const blocksIn = (wanted: string): Block[] => own.filter(({ language }) => language === wanted);
const codeIn = (wanted: string): string[] => blocksIn(wanted).map(({ code }) => code);

/** Replaces the endpoint in a snippet by that of the shared server. */
const here = (code: string): string =>
  code
    .replaceAll('http://127.0.0.1:2379', inject('etcd'))
    .replaceAll('new EtcdClient()', `new EtcdClient({ endpoints: '${inject('etcd')}' })`);

const numbered = (found: readonly Block[]) => found.map(({ file, code }, i) => ({ n: i + 1, file, code }));

describe('in the README and docs/', () => {
  const js = codeIn('js');
  const snippets = blocksIn('js').filter(({ code }) => !nameOf(code));

  test.each(numbered(snippets))(
    'JavaScript snippet $n (in $file) runs unchanged and exits with 0',
    async ({ code }) => {
      const { code: exit, stderr } = await runScript(here(code));
      expect({ exit, stderr }).toEqual({ exit: 0, stderr: '' });
    },
  );

  test.each(numbered(blocksIn('ts')))(
    'TypeScript snippet $n (in $file) compiles in strict mode and runs',
    async ({ code }) => {
      // Compiles the declarations of the other entry point too.
      const server = "export { EmbeddedEtcd } from 'etcd-v2-lock/server';";
      const files = { 'snippet.ts': here(code), 'server.ts': server, 'tsconfig.json': strictTsconfig() };
      const { code: exit, output } = await runInUserProject(files, [COMPILE, ['out/snippet.js']]);
      expect({ exit, output }).toEqual({ exit: 0, output: expect.stringMatching(/^held, with token \d+n\n$/) });
    },
  );

  test('the recommended settings for TypeScript compile the TypeScript snippets', async () => {
    // That of docs/ui.md is compared with an answer in test/cli/ui-server.test.ts.
    const [settings = '', ...others] = blocksIn('json').flatMap(({ file, code }) =>
      file === 'docs/ui.md' ? [] : code,
    );
    expect(others).toEqual([]);
    const snippets = codeIn('ts').map((code, i) => [`snippet-${i}.ts`, code]);
    const { code, output } = await runInUserProject(Object.fromEntries([...snippets, ['tsconfig.json', settings]]), [
      COMPILE,
    ]);
    expect({ code, output }).toEqual({ code: 0, output: '' });
  });

  test('the example with TLS and a password acquires a lock on an etcd that requires both', async () => {
    const [snippet = ''] = js.filter((code) => nameOf(code) === 'locked.js');
    const authority = makeAuthority();
    const { etcd, url } = await useTlsEtcd(authority.issue(), authority);
    await guard(etcd.url);
    const client = authority.issue();
    const files = {
      'ca.pem': authority.ca,
      'client.pem': client.cert,
      'client-key.pem': client.key,
      'locked.js': snippet.replaceAll(/https:\/\/etcd-\d:2379/g, url),
    };
    const { code, output } = await runInUserProject(files, [['locked.js']], { ETCD_PASSWORD: APP.password });
    expect({ code, output }).toEqual({ code: 0, output: 'held\n' });
  });

  const [underTest = '', ...itsTests] = js.filter((code) => /report/.test(nameOf(code) ?? ''));

  test.each([
    ['Vitest', 'vitest', ['node_modules/vitest/vitest.mjs', 'run']],
    ['node:test', 'node:test', ['--test']],
  ])('the example of a test with %s passes unchanged', async (_, runner, args) => {
    const tests = itsTests.filter((code) => code.includes(`from '${runner}'`));
    expect(tests.map(nameOf)).toEqual(['report.test.js']);
    const files = Object.fromEntries([underTest, ...tests].map((code) => [nameOf(code), code]));
    const { code, output } = await runInUserProject(files, [args]);
    expect({ code, output }).toMatchObject({
      code: 0,
      output: expect.stringMatching(/(?:pass 1|1 passed)\b/),
    });
  });

  test('the example with fake timers passes unchanged', async () => {
    const [code = ''] = js.filter((snippet) => nameOf(snippet) === 'lost.test.js');
    const run = await runInUserProject({ 'lost.test.js': code }, [['node_modules/vitest/vitest.mjs', 'run']]);
    expect(run).toMatchObject({ code: 0, output: expect.stringMatching(/1 passed\b/) });
  });

  const shell = blocksIn('sh');
  const serving = shell.filter(({ code }) => code.includes('etcd-v2-lock serve'));
  const showing = shell.filter(({ code }) => code.includes('etcd-v2-lock demo'));
  const others = shell.filter((block) => ![...serving, ...showing].includes(block));
  const commands = others.filter(({ code }) => /^(?:npx )?etcd-v2-lock /.test(code));

  test.each(numbered(commands))(
    'the commands of shell snippet $n (in $file) succeed and print the holder of the lock',
    async ({ code }) => {
      const etcd = await EmbeddedEtcd.start();
      onTestFinished(() => etcd.stop());
      const holder = randomUUID();
      await raw('POST', '/_locks/nightly-report', { value: holder, ttl: '600' }, etcd.url);
      const { stdout, stderr } = await runInShell(code, { ETCD_ENDPOINTS: etcd.url });
      expect(stderr).toBe('');
      expect(stdout).toContain(holder);
    },
  );

  test('the command that locks by etcdctl waits until a LockManager on etcd v3 has released the lock', async () => {
    const [code = '', ...others] = shell.flatMap((block) => (block.code.startsWith('etcdctl ') ? block.code : []));
    expect(others).toEqual([]);
    const client = new EtcdClient({ endpoints: inject('etcd'), api: 'v3' });
    onTestFinished(() => client.close());
    const env = { ETCDCTL_API: '3', ETCDCTL_ENDPOINTS: inject('etcd') };
    const held = await new LockManager(client).acquire('nightly-report');
    let isReleased = false;
    const locked = runInShell(code, env).then((output) => ({ ...output, isReleased }));
    await until(
      () => entriesBelow('/_locks/nightly-report/'),
      ({ length }) => length === 2,
    );
    isReleased = true;
    await held.release();
    expect(await locked).toEqual({ stdout: 'working\n', stderr: '', isReleased: true });
  });

  test.each(numbered(snippets.filter(({ file }) => file === 'README.md')))(
    'example $n of the README runs on the etcd in memory that its command starts',
    async ({ code }) => {
      expect(serving.map(({ code }) => code)).toEqual(['npx etcd-v2-lock serve\n']);
      const { process, result } = startNode(['dist/cli/main.js', 'serve', '--port', '0']);
      onTestFinished(() => void process.kill('SIGKILL'));
      const [url] = await once(process.stdout, 'data');
      expect(await runScript(code.replace('http://127.0.0.1:2379', String(url).trim()))).toMatchObject({
        code: 0,
        stdout: expect.stringMatching(/^held, with token \d+n\n$/),
        stderr: '',
      });
      process.kill('SIGTERM');
      expect(await result).toMatchObject({ code: 143, stderr: '' });
    },
  );

  test('the queue in the README is what `inspect` prints', async () => {
    const shown = own.filter(({ file, language }) => file === 'README.md' && language === 'text')[1]?.code ?? '';
    const etcd = await startEtcd();
    onTestFinished(() => etcd.stop());
    const waitsSince = (Date.now() - 372_000).toString(16).padStart(12, '0');
    const uuids = [randomUUID(), randomUUID(), randomUUID()].map((uuid) => uuid.replaceAll('-', ''));
    const values = [uuids[0], `${waitsSince}7${uuids[1]?.slice(13)}@web-1%3A7`, uuids[2]];
    for (const value of values) {
      await raw('POST', '/_locks/nightly-report', { value: String(value), ttl: '600' }, etcd.url);
    }
    const { stdout } = await runInShell('etcd-v2-lock inspect nightly-report', { ETCD_ENDPOINTS: etcd.url });
    expect(comparable(stdout)).toBe(comparable(shown));
  });

  test.each(numbered(showing))('the demo of shell snippet $n (in $file) shows locks that work', async ({ code }) => {
    const { stdout, stderr } = await runInShell(code, { ETCD_ENDPOINTS: '' });
    expect(stderr).toBe('');
    expect(stdout.match(/^✔ .*, 0 overlaps, /gm)).toHaveLength(2);
  });

  test.each(numbered(blocks.filter(({ language }) => language === 'crontab')))(
    'the command of crontab $n (in $file) runs the job, and skips it while another host runs it or has run it',
    async ({ code }) => {
      const etcd = await EmbeddedEtcd.start();
      onTestFinished(() => etcd.stop());
      const [, command = ''] = /^0 (?:\*|3) \* \* \* (.*)$/m.exec(code) ?? [];
      // Not the hour of the crontab, which may end between the two runs.
      const job = command
        .replace('/usr/local/bin/import', 'echo imported')
        .replace(/--once (?:1h|'0 3 \* \* \*' --time-zone \S+)/, '--once 366d');
      const env = { ETCD_ENDPOINTS: etcd.url };
      expect(await runInShell(job, env)).toEqual({ stdout: 'imported\n', stderr: '' });
      if (command.includes('--once')) {
        expect(await runInShell(job, env)).toEqual({ stdout: '', stderr: '' });
        return;
      }
      await raw('POST', '/_locks/import', { value: randomUUID(), ttl: '600' }, etcd.url);
      await expect(runInShell(job, env)).rejects.toMatchObject({ code: 1, stdout: '' });
    },
  );

  test('there are only snippets that these tests run', () => {
    // Those in Go and Java are run by `npm run peers`.
    const executed = ['crontab', 'go', 'java', 'js', 'json', 'sh', 'ts'];
    const generated = pages.filter(isGenerated).flatMap((one) => one.blocks);
    const written = own.filter((block) => !generated.includes(block));
    expect(written.filter(({ language }) => !executed.includes(language))).toMatchObject([
      { file: 'README.md', language: 'text' }, // the drawing of a queue
      { file: 'README.md', language: 'text' }, // the output of `inspect`
      { file: 'docs/bridge.md', language: 'text' }, // the drawing of a bridge
      { file: 'docs/moving.md', language: 'text' }, // the drawing of the steps
      { file: 'docs/design/leases.md', language: 'mermaid' },
      { file: 'docs/design/leases.md', language: 'mermaid' },
      { file: 'docs/design/tokens.md', language: 'mermaid' },
    ]);
    expect(snippets.length).toBeGreaterThan(2);
    for (const { code } of shell)
      expect(code).toMatch(/^(?:(?:npm|(?:npx |handle=\$\()?etcd-v2-lock|etcdctl lock) .*\n)+$/);
  });

  test('the npm commands install this package, and run scripts that it has', () => {
    const found = codeIn('sh').flatMap((code) => code.match(/^npm .*?(?=\s+#|$)/gm) ?? []);
    expect(found).toEqual([
      `npm install ${packageJson.name}`,
      // Run by test/simulation/simulate.test.ts.
      'npm run simulate -- --worlds 300',
      'npm run simulate -- --worlds 1 --seed 1234 --trace',
    ]);
    expect(packageJson.scripts).toMatchObject({ simulate: expect.any(String) });
  });
});
