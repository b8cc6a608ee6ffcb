import { readFileSync } from 'node:fs';
import { describe, expect, inject, test } from 'vitest';
import { runScript } from './support/script.ts';
import { runInUserProject } from './support/user-project.ts';

const read = (file: string): string => readFileSync(new URL(`../${file}`, import.meta.url), 'utf8');
const readme = read('README.md');

const blocks = [...readme.matchAll(/^```(\w+)\n([\s\S]*?)^```$/gm)].map(([, language = '', code = '']) => ({
  language,
  code,
}));

/** The file a snippet says it is. */
const nameOf = (code: string): string | undefined =>
  /^\/\/ (\S+\.js)$/m.exec(code.slice(0, code.indexOf('\n') + 1))?.[1];

describe('the README', () => {
  const js = blocks.filter(({ language }) => language === 'js').map(({ code }) => code);
  const snippets = js.filter((code) => !nameOf(code)).map((code, i) => ({ n: i + 1, code }));

  test.each(snippets)('snippet $n runs as it is, and ends by itself', async ({ code }) => {
    // Only the address is not the reader's own.
    const here = code
      .replaceAll('http://127.0.0.1:2379', inject('etcd'))
      .replaceAll('new EtcdClient()', `new EtcdClient({ endpoints: '${inject('etcd')}' })`);
    const { code: exit, stderr } = await runScript(here);
    expect({ exit, stderr }).toEqual({ exit: 0, stderr: '' });
  });

  const [underTest = '', ...itsTests] = js.filter(nameOf);

  test.each([
    ['Vitest', 'vitest', ['node_modules/vitest/vitest.mjs', 'run']],
    ['node:test', 'node:test', ['--test']],
  ])('the example of a test with %s passes as it is', async (_, runner, args) => {
    const tests = itsTests.filter((code) => code.includes(`from '${runner}'`));
    expect(tests.map(nameOf)).toEqual(['report.test.js']);
    const files = Object.fromEntries([underTest, ...tests].map((code) => [nameOf(code), code]));
    const { code, output } = await runInUserProject(files, [args]);
    expect({ code, output }).toMatchObject({
      code: 0,
      output: expect.stringMatching(/(?:pass 1|1 passed)\b/),
    });
  });

  test('has only snippets that are run, and two commands that exist', () => {
    expect(new Set(blocks.map(({ language }) => language))).toEqual(new Set(['sh', 'js']));
    expect(snippets.length).toBeGreaterThan(2);
    const { scripts } = JSON.parse(read('package.json'));
    const commands = blocks
      .filter(({ language }) => language === 'sh')
      .flatMap(({ code }) => code.match(/^npm .*?(?=\s+#|$)/gm));
    expect(commands).toEqual(['npm run demo', 'npm test']);
    expect(scripts).toMatchObject({ demo: expect.any(String), test: expect.any(String) });
  });

  test('names only errors and members that the package has', async () => {
    const { stdout } = await runScript(`
      import * as api from 'etcd-v2-lock';
      const { Lock } = api;
      console.log([...Object.keys(api), ...Object.getOwnPropertyNames(Lock.prototype)].join(' '));
    `);
    const known = new Set([...stdout.trim().split(' '), 'name', 'path']);
    const rows = readme.slice(readme.indexOf('## If you come'), readme.indexOf('### `blocking'));
    const members = [...rows.matchAll(/`(?:await )?lock\.([a-z]\w*[A-Z]?\w*)(?:\(.*?\))?`/g)].map(
      ([, name = '']) => name,
    );
    const ours = members.filter((name) => !name.includes('_'));
    expect(ours.length).toBeGreaterThan(5);
    for (const name of ours) expect(known).toContain(name);
    for (const [, name = ''] of readme.slice(readme.indexOf('## Errors')).matchAll(/`(Etcd\w+)`/g))
      expect(known).toContain(name);
  });
});
