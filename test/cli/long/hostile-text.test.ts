import { describe, expect, test } from 'vitest';
import { useAlteredMember } from '../../support/altered-member.ts';
import { serve } from '../../support/clients.ts';
import { expectPrintable, HARMLESS } from '../../support/hostile.ts';
import { ALL, expectSafe, TEXTS, textsOf, useHostileEtcd } from '../../support/hostile-etcd.ts';
import { serveOpenly } from '../../support/open-server.ts';
import { ask } from '../../support/queues.ts';
import { answer } from '../../support/tcp-server.ts';
import { failed, rawAnswer } from '../../support/v2-answers.ts';

/** Seconds: long enough to read the queue on a busy machine. */
const QUICK = ['--timeout', '3', '--', 'true'];

describe('untrusted text in queues is printed with unprintable characters escaped', () => {
  test.each<[string, string[], number]>([
    ['ls', ['ls'], 0],
    ['inspect', ['inspect', 'queue'], 0],
    ['prune --dry-run', ['prune', '--dry-run'], 0],
    ['prune', ['prune'], 0],
    ['release without --force', ['release', 'queue', '--uuid', 'nosuch'], 1],
    ['release with several matches', ['release', 'queue', '--uuid', 'u1'], 1],
    ['release of a holder', ['release', 'queue', '--uuid', TEXTS[0] ?? '', '--force'], 0],
    ['run with a timeout', ['run', 'queue', ...QUICK], 124],
    ['run with a conflict exit code', ['run', 'queue', '-E', '9', ...QUICK], 9],
    ['run --if-available', ['run', 'queue', '--if-available', '--', 'true'], 1],
    ['doctor', ['doctor', '--ttl', '600'], 0],
  ])('by %s', async (_, args, code) => {
    const etcd = await useHostileEtcd();
    const ended = await ask(args, etcd);
    expect(ended.code, ended.stderr).toBe(code);
    expectSafe(ended);
    if (['ls', 'inspect', 'prune'].includes(args[0] ?? '')) expect(ended.stdout).toContain(HARMLESS);
  });

  test.each<[string, string[]]>([
    ['ls', ['ls']],
    ['inspect', ['inspect', 'queue']],
    ['prune', ['prune']],
  ])('by %s --json, without loss of text', async (_, args) => {
    const ended = await ask([...args, '--json'], await useHostileEtcd());
    expect(ended).toMatchObject({ code: 0, stderr: '' });
    expectPrintable(ended.stdout);
    const printed = textsOf(ended.stdout);
    for (const text of TEXTS) expect(printed.some((one) => one.endsWith(text))).toBe(true);
  });
});

const commandLines: readonly (readonly [args: string[], code: number])[] = [
  [['run', ALL, '--', 'true'], 0],
  [['run', ALL, '--if-available', '--', `nosuch ${ALL}`], 127],
  [['run', 'free', '--', `${ALL}/x`], 127],
  [['run', 'free', '--timeout', ALL, '--', 'true'], 64],
  [['run', 'free', '-E', ALL, '--', 'true'], 64],
  [['run', 'free', '--identity', ALL.repeat(9), '--', 'true'], 64],
  [['run', `${ALL}//`, '--', 'true'], 64],
  [['inspect', ALL], 0],
  [['ls', ALL], 0],
  [['ls', `${ALL}//x`], 64],
  [['release', ALL, '--uuid', ALL], 1],
  [['release', 'free', '--key', `/${ALL}`], 64],
  [['ls', '--lock-prefix', ALL], 64],
  [['ls', '--endpoints', ALL.replaceAll(',', '')], 64],
  [['ls', '--endpoints', `http://127.0.0.1/${ALL}`], 64],
  [['ls', '--cacert', ALL], 64],
  [['ls', '--cert', ALL], 64],
  [['ls', '--user', ALL.replaceAll(':', '')], 64],
  [['ls', '--user', 'root', '--password-file', ALL], 64],
  [['serve', '--host', ALL], 125],
  [['serve', '--port', ALL], 64],
  [[ALL], 64],
  [['ls', `--no${ALL}`], 64],
  [['ls', `-${ALL}`], 64],
];

test.each(
  commandLines.map(([args, code]) => ({
    args,
    code,
    shown: JSON.stringify(args).replaceAll(JSON.stringify(ALL).slice(1, -1), '…'),
  })),
)('a message about a command line is printable: $shown', async ({ args, code }) => {
  const { url } = await serveOpenly();
  const ended = await ask(args, url);
  expect(ended.code, ended.stderr).toBe(code);
  expectSafe(ended);
});

describe.each<[string, string]>([
  ['is a refusal with untrusted text', rawAnswer(403, failed(107, ALL, ALL))],
  ['is an error with untrusted text', rawAnswer(500, failed(300, ALL, ALL))],
  ['is a web page', rawAnswer(200, ALL, { 'content-type': 'text/html' })],
])('a message about an answer that %s is printable', (_, hostile) => {
  test.each<string[][]>([
    [['ls']],
    [['inspect', 'queue']],
    [['watch', 'queue']],
    [['prune', '--json']],
    [['release', 'queue', '--uuid', 'u1']],
    [['run', 'queue', ...QUICK]],
    [['doctor']],
  ])('by %j', async (args) => {
    const { url } = await serve(answer(hostile));
    const ended = await ask(args, url);
    expect(ended.code).not.toBe(0);
    expectSafe(ended);
  });
});

test.each([[[]], [['--json']]])(
  'doctor %j escapes unprintable characters in names, versions and URLs of members',
  async (json) => {
    const { url } = await serveOpenly();
    const member = await useAlteredMember((asked, { body }) => {
      if (asked.endsWith('/version'))
        return { body: JSON.stringify({ etcdserver: `3.4.${ALL}`, etcdcluster: `3.4.${ALL}` }) };
      if (asked.endsWith('/self')) return { body: JSON.stringify({ id: '1', name: ALL }) };
      if (!asked.endsWith('/members')) return { body };
      const other = { id: ALL, name: ALL, peerURLs: [], clientURLs: [`http://${ALL}`] };
      return { body: JSON.stringify({ members: [other, { ...other, id: '2', clientURLs: [] }] }) };
    }, url);
    const ended = await ask(['doctor', '--ttl', '600', ...json], member);
    expect(ended).toMatchObject({ code: 0, stderr: '' });
    expectSafe(ended);
    if (json.length > 0) expect(textsOf(ended.stdout)).toContain(ALL);
    else expect(ended.stdout).toContain(HARMLESS);
  },
);
