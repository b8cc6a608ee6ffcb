// Every snippet of the README and of docs/ is executed.
import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { describe, expect, inject, onTestFinished, test } from 'vitest';
import { EtcdClient, LockManager } from '../../src/index.ts';
import { EmbeddedEtcd } from '../../src/server/index.ts';
import { makeAuthority } from '../support/certificates.ts';
import { startEtcd } from '../support/etcd.ts';
import { entriesBelow } from '../support/gateway.ts';
import { raw } from '../support/locks.ts';
import { type Block, blocks, packageJson, page } from '../support/readme.ts';
import { runScript, startNode } from '../support/script.ts';
import { APP, guard, useTlsEtcd } from '../support/secured-etcd.ts';
import { runInShell } from '../support/shell.ts';
import { until } from '../support/until.ts';
import { COMPILE, runInUserProject, strictTsconfig } from '../support/user-project.ts';

/** The file name in the first line of a snippet. */
const nameOf = (code: string): string | undefined =>
  /^\/\/ (\S+\.js)$/m.exec(code.slice(0, code.indexOf('\n') + 1))?.[1];

const blocksIn = (wanted: string): Block[] => blocks.filter(({ language }) => language === wanted);
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
    const [settings = '', ...others] = codeIn('json');
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
  const bridging = shell.filter(({ code }) => / bridge /.test(code));
  const moving = shell.filter((block) => block.file === 'docs/moving.md' && !bridging.includes(block));
  const showing = shell.filter(({ code }) => code.includes('etcd-v2-lock demo'));
  const others = shell.filter((block) => ![...serving, ...bridging, ...moving, ...showing].includes(block));
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

  test.each(numbered(moving.filter(({ code }) => !code.includes('doctor'))))(
    'the command that moves to etcd v3 ($n) runs its command under a lock',
    async ({ code }) => {
      const { stdout, stderr } = await runInShell(code, { ETCD_ENDPOINTS: inject('etcd') });
      expect({ stdout, stderr }).toEqual({ stdout: 'working\n', stderr: '' });
    },
  );

  test('the command for the state of a move says what the next step is', async () => {
    const checks = moving.filter(({ code }) => code.includes('doctor'));
    expect(checks).toHaveLength(1);
    const etcd = await startEtcd();
    onTestFinished(() => etcd.stop());
    const { stdout } = await runInShell(checks[0]?.code ?? '', { ETCD_ENDPOINTS: etcd.url });
    expect(stdout).toContain('no listed lock has had an entry on v2 while this command watched');
  });

  test('the command that starts a bridge of kind both starts one', async () => {
    const [code = '', ...others] = bridging.map((block) => block.code.trim());
    expect(others).toEqual([]);
    const args = code
      .replace('http://etcd-1:2379,http://etcd-2:2379', inject('etcd'))
      .replace(':4001', ':0')
      .split(' ');
    expect(args).toContain(inject('etcd'));
    const { process, result } = startNode(['dist/cli/main.js', ...args.slice(1)]);
    onTestFinished(() => void process.kill('SIGKILL'));
    const [url] = await once(process.stdout, 'data');
    await raw('PUT', '/_locks/nightly-report', { dir: 'true', prevExist: 'false' });
    const answer = await fetch(`${String(url).trim()}/v2/keys/_locks/nightly-report?recursive=true`);
    expect(await answer.json()).toMatchObject({ action: 'get', node: { key: '/_locks/nightly-report' } });
    process.kill('SIGTERM');
    expect(await result).toMatchObject({ code: 143, stderr: '' });
  });

  test.each([['v2'], ['v3']])(
    'the first example of the README runs on %s, on the etcd in memory that its command starts',
    async (api) => {
      expect(serving.map(({ code }) => code)).toEqual(['npx etcd-v2-lock serve\n']);
      const { process, result } = startNode(['dist/cli/main.js', 'serve', '--port', '0']);
      onTestFinished(() => void process.kill('SIGKILL'));
      const [url] = await once(process.stdout, 'data');
      const [example] = snippets.filter(({ file }) => file === 'README.md');
      const endpoints = "endpoints: ['http://127.0.0.1:2379']";
      const code = example?.code.replace(endpoints, `endpoints: ['${String(url).trim()}'], api: '${api}'`) ?? '';
      expect(await runScript(code)).toMatchObject({
        code: 0,
        stdout: expect.stringMatching(/^held, with token \d+n\n$/),
        stderr: '',
      });
      process.kill('SIGTERM');
      expect(await result).toMatchObject({ code: 143, stderr: '' });
    },
  );

  test.each(numbered(showing))('the demo of shell snippet $n (in $file) shows locks that work', async ({ code }) => {
    const { stdout, stderr } = await runInShell(code, { ETCD_ENDPOINTS: '' });
    expect(stderr).toBe('');
    expect(stdout.match(/^✔ .*, 0 overlaps, /gm)).toHaveLength(2);
  });

  test.each(numbered(blocksIn('crontab')))(
    'the command of crontab $n (in $file) runs the job, and skips it while another host runs it or has run it',
    async ({ code }) => {
      const etcd = await EmbeddedEtcd.start();
      onTestFinished(() => etcd.stop());
      const [, command = ''] = /^0 \* \* \* \* (.*)\n$/.exec(code) ?? [];
      // Not the hour of the crontab, which may end between the two runs.
      const job = command.replace('/usr/local/bin/import', 'echo imported').replace('--once 1h', '--once 366d');
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
    const generated = page('docs/cli.md').blocks;
    const written = blocks.filter((block) => !generated.includes(block));
    expect(written.filter(({ language }) => !executed.includes(language))).toMatchObject([
      { file: 'README.md', language: 'text' }, // the drawing of a queue
      { file: 'docs/bridge.md', language: 'text' }, // the drawing of a bridge
      { file: 'docs/bridge.md', language: 'ini' }, // run by deployment.test.ts
      { file: 'docs/moving.md', language: 'text' }, // the drawing of the steps
    ]);
    expect(snippets.length).toBeGreaterThan(2);
    for (const { code } of shell) expect(code).toMatch(/^(?:(?:npm|(?:npx )?etcd-v2-lock|etcdctl lock) .*\n)+$/);
  });

  test('the npm commands install this package, and run scripts that it has', () => {
    const found = codeIn('sh').flatMap((code) => code.match(/^npm .*?(?=\s+#|$)/gm) ?? []);
    expect(found).toEqual([
      `npm install ${packageJson.name}`,
      'npm run demo',
      'npm test',
      'npm run peers',
      // Run by test/simulation/simulate.test.ts.
      'npm run simulate -- --worlds 300',
      'npm run simulate -- --worlds 1 --seed 1234 --trace',
    ]);
    expect(packageJson.scripts).toMatchObject({
      simulate: expect.any(String),
      demo: expect.any(String),
      test: expect.any(String),
      peers: expect.any(String),
    });
  });
});
