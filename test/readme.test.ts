import { randomUUID } from 'node:crypto';
import { describe, expect, inject, onTestFinished, test } from 'vitest';
import { EmbeddedEtcd } from '../src/server/index.ts';
import { makeAuthority } from './support/certificates.ts';
import { raw } from './support/locks.ts';
import { blocks, packageJson } from './support/readme.ts';
import { runScript } from './support/script.ts';
import { APP, guard, useTlsEtcd } from './support/secured-etcd.ts';
import { runInShell } from './support/shell.ts';
import { COMPILE, runInUserProject, strictTsconfig } from './support/user-project.ts';

/** The file name in the first line of a snippet. */
const nameOf = (code: string): string | undefined =>
  /^\/\/ (\S+\.js)$/m.exec(code.slice(0, code.indexOf('\n') + 1))?.[1];

const codeIn = (wanted: string): string[] =>
  blocks.filter(({ language }) => language === wanted).map(({ code }) => code);

/** Replaces the endpoint in a snippet by that of the shared server. */
const here = (code: string): string =>
  code
    .replaceAll('http://127.0.0.1:2379', inject('etcd'))
    .replaceAll('new EtcdClient()', `new EtcdClient({ endpoints: '${inject('etcd')}' })`);

const numbered = (codes: readonly string[]) => codes.map((code, i) => ({ n: i + 1, code }));

describe('the README', () => {
  const js = codeIn('js');
  const snippets = js.filter((code) => !nameOf(code));

  test.each(numbered(snippets))('JavaScript snippet $n runs unchanged and exits with 0', async ({ code }) => {
    const { code: exit, stderr } = await runScript(here(code));
    expect({ exit, stderr }).toEqual({ exit: 0, stderr: '' });
  });

  test.each(numbered(codeIn('ts')))('TypeScript snippet $n compiles in strict mode and runs', async ({ code }) => {
    // Compiles the declarations of the other entry point too.
    const server = "export { EmbeddedEtcd } from 'etcd-v2-lock/server';";
    const files = { 'snippet.ts': here(code), 'server.ts': server, 'tsconfig.json': strictTsconfig() };
    const { code: exit, output } = await runInUserProject(files, [COMPILE, ['out/snippet.js']]);
    expect({ exit, output }).toEqual({ exit: 0, output: expect.stringMatching(/^mine, with token \d+n\n$/) });
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
    expect({ code, output }).toEqual({ code: 0, output: 'mine\n' });
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

  test.each(numbered(codeIn('sh').filter((code) => code.startsWith('etcd-v2-lock'))))(
    'the commands of shell snippet $n succeed and print the holder of the lock',
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

  test('has only snippets that these tests run, and two npm commands, which exist', () => {
    expect(new Set(blocks.map(({ language }) => language))).toEqual(new Set(['sh', 'js', 'ts']));
    expect(snippets.length).toBeGreaterThan(2);
    const commands = codeIn('sh').flatMap((code) => code.match(/^npm .*?(?=\s+#|$)/gm) ?? []);
    expect(commands).toEqual(['npm run demo', 'npm test']);
    for (const code of codeIn('sh')) expect(code).toMatch(/^(?:(?:npm|etcd-v2-lock) .*\n)+$/);
    expect(packageJson.scripts).toMatchObject({ demo: expect.any(String), test: expect.any(String) });
  });
});
