import { readFileSync } from 'node:fs';
import { describe, expect, inject, test } from 'vitest';
import { runScript } from './support/script.ts';

const read = (file: string): string => readFileSync(new URL(`../${file}`, import.meta.url), 'utf8');
const readme = read('README.md');

const blocks = [...readme.matchAll(/^```(\w+)\n([\s\S]*?)^```$/gm)].map(([, language = '', code = '']) => ({
  language,
  code,
}));

describe('the README', () => {
  const snippets = blocks.filter(({ language }) => language === 'js').map(({ code }, i) => ({ n: i + 1, code }));

  test.each(snippets)('snippet $n runs as it is, and ends by itself', async ({ code }) => {
    // Only the address is not the reader's own.
    const here = code
      .replaceAll('http://127.0.0.1:2379', inject('etcd'))
      .replaceAll('new EtcdClient()', `new EtcdClient({ endpoints: '${inject('etcd')}' })`);
    const { code: exit, stderr } = await runScript(here);
    expect({ exit, stderr }).toEqual({ exit: 0, stderr: '' });
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
