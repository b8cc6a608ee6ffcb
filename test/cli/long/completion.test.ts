// The completion scripts in the real shells.
import { execFile } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { delimiter, join } from 'node:path';
import { promisify } from 'node:util';
import { describe, expect, onTestFinished, test } from 'vitest';
import { program } from '../../../src/cli/program.ts';
import { EmbeddedEtcd } from '../../../src/server/index.ts';
import { runCli } from '../../support/cli.ts';
import { raw } from '../../support/locks.ts';
import { temporaryDirectory } from '../../support/temporary.ts';
import { startOnTerminal } from '../../support/terminal.ts';

const execute = promisify(execFile);

/** What the user types before the tab key, and the last word after it. */
const LINES = [
  ['ins', 'inspect'],
  ['--vers', '--version'],
  ['--lock-prefix /x ins', 'inspect'],
  ['--cacert CHANGE', 'CHANGELOG.md'],
  ['--endpoints http://a:2379,http://b:2379 ins', 'inspect'],
  ['--user a:b run x:y --if-a', '--if-available'],
  ['run --if-a', '--if-available'],
  ['run x --key-file CHANGE', 'CHANGELOG.md'],
  ['run x --ttl 5 --conf', '--conflict-exit-code'],
  ['ls --discovery-srv-', '--discovery-srv-name'],
  ['release x --forc', '--force'],
  ['completion f', 'fish'],
  ['help doc', 'doctor'],
  ['run x --ttl 5 -- only-t', 'only-this-command'],
  ['run x -- cat CHANGE', 'CHANGELOG.md'],
  ['elect x --va', '--value'],
  ['elect x --ttl 5 -- only-t', 'only-this-command'],
  ['run x only-t', 'only-this-command'],
  ['run --ttl 5 x only-t', 'only-this-command'],
  ['run x --ttl 5 only-t', 'only-this-command'],
  ['run x cat CHANGE', 'CHANGELOG.md'],
  ['run x cat -n CHANGE', 'CHANGELOG.md'],
  ['elect x cat CHANGE', 'CHANGELOG.md'],
  ['inspect nigh', 'nightly-report'],
  ['--api v2 watch --json nigh', 'nightly-report'],
  ['run --ttl 5 jo', 'jobs/import'],
  ['ls jobs/i', 'jobs/import'],
] as const;

/** Lines that the tab key does not change: free text, or an option of another command. */
const UNCHANGED = [
  'run --timeout i',
  'run x --label only-t',
  'inspect run',
  'inspect odd',
  'inspect nightly-report nigh',
  'inspect --api v3 nigh',
  'inspect --endpoints http://127.0.0.1:1 nigh',
  'run --label nigh',
  'serve --endp',
  'ls --if-a',
  'nosuch ins',
  'run x only-this-command --if-a',
  'run x -- only-this-command --if-a',
  'elect x only-this-command --val',
] as const;

let script: string;
let env: Record<string, string>;

/** Clears the line and asks for another prompt. Not ^C, which a shell may miss while it completes. */
const CLEAR = '\u0015\n';

/** Names of locks: those that a shell could expand or split are not completed. */
const NAMES = ['nightly-report', 'odd name', 'odd$(touch x)', 'odd;x', '-odd', 'jobs/import'];

/** Writes the script, a command that only these tests have, and etcd-v2-lock itself, for names of locks. */
async function prepare(shell: string): Promise<void> {
  const directory = temporaryDirectory();
  const { code, stdout, stderr } = await runCli(['completion', shell]);
  expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
  script = join(directory, `completion.${shell}`);
  writeFileSync(script, stdout);
  writeFileSync(join(directory, 'only-this-command'), '#!/bin/sh\n', { mode: 0o755 });
  const program = `exec '${process.execPath}' '${join(process.cwd(), 'dist/cli/main.js')}' "$@"`;
  writeFileSync(join(directory, 'etcd-v2-lock'), `#!/bin/sh\n${program}\n`, { mode: 0o755 });
  const etcd = await EmbeddedEtcd.start();
  onTestFinished(() => etcd.stop());
  for (const name of NAMES) await raw('POST', `/_locks/${encodeURIComponent(name)}`, { value: 'u1' }, etcd.url);
  // No history: bash would write it to the directory when the terminal closes, while the end of the test removes the directory.
  env = {
    PATH: [directory, process.env['PATH']].join(delimiter),
    HOME: directory,
    HISTFILE: '',
    TERM: 'dumb',
    ETCD_ENDPOINTS: etcd.url,
  };
}

const escapeRegExp = (text: string): string => text.replace(/[\\^$.*+?()[\]{}|]/g, '\\$&');

/** A shell may ring the bell at the tab. */
const shownAfter = (typed: string): string => `ready> etcd-v2-lock ${escapeRegExp(typed)}\u0007*`;

/** Types each line and a tab in one interactive shell, and expects what the shell then shows. */
async function completes(shell: readonly string[], setUp: string): Promise<void> {
  const terminal = startOnTerminal(shell, { ...env, PS1: 'shell> ' });
  // zsh turns bracketed paste on after its prompt.
  await terminal.shows(/shell> \S*$/);
  terminal.type(`${setUp}; PS1='ready> '\n`);
  await terminal.shows(/ready> $/);
  for (const [typed, word] of LINES) {
    const added = typed.replace(/\S+$/, word).slice(typed.length);
    terminal.type(`etcd-v2-lock ${typed}\t`);
    await terminal.shows(new RegExp(`${shownAfter(typed)}${escapeRegExp(added)}[ =]?$`));
    terminal.type(CLEAR);
    await terminal.shows(/ready> $/);
  }
  for (const typed of UNCHANGED) {
    // What follows the tab shows that the shell has handled it.
    terminal.type(`etcd-v2-lock ${typed}\t.`);
    await terminal.shows(new RegExp(`${shownAfter(typed)}\\.$`));
    terminal.type(CLEAR);
    await terminal.shows(/ready> $/);
  }
}

describe('bash', () => {
  test('completes commands, options, files, operands, and the command of run', async () => {
    await prepare('bash');
    await completes(['bash', '--norc', '--noprofile', '-i'], `bind 'set enable-bracketed-paste off'; source ${script}`);
  });

  test('completes a value after =, and lists all commands', async () => {
    await prepare('bash');
    const at = (...words: readonly string[]) =>
      `COMP_WORDS=(etcd-v2-lock ${words.map((word) => `'${word}'`).join(' ')}); COMP_CWORD=${words.length}; _etcd_v2_lock; echo "\${COMPREPLY[*]}"`;
    const lines = [at('ls', '--cacert', '=', 'CHANGE'), at('')];
    const { stdout } = await execute('bash', ['-uc', `source ${script}; ${lines.join('; ')}`], {
      env: { ...process.env, ...env },
    });
    expect(stdout.split('\n')).toEqual([
      'CHANGELOG.md',
      program()
        .commands.map((command) => command.name())
        .join(' '),
      '',
    ]);
  });
});

test('zsh completes commands, options, files, operands, and the command of run', async () => {
  await prepare('zsh');
  await completes(
    ['zsh', '-f', '-i'],
    `unset zle_bracketed_paste; autoload -Uz compinit; compinit -D -u; source ${script}`,
  );
});

test('fish completes commands, options, files, operands, and the command of run', async () => {
  await prepare('fish');
  const typed = [...LINES.map(([words]) => words), ...UNCHANGED];
  const asked = typed.map((words) => `echo ">"(complete -C 'etcd-v2-lock ${words}')`).join('\n');
  const { stdout, stderr } = await execute('fish', ['--no-config', '-c', `source ${script}\n${asked}`], {
    env: { ...process.env, ...env },
  });
  expect(stderr).toBe('');
  // The description of a word follows a tab.
  expect(stdout.split('\n').map((line) => line.split('\t')[0])).toEqual([
    ...LINES.map(([, word]) => `>${word}`),
    ...UNCHANGED.map(() => ''),
    '',
  ]);
});

test('another shell is bad usage, and the message lists the shells', async () => {
  const { code, stderr } = await runCli(['completion', 'tcsh']);
  expect(code).toBe(64);
  expect(stderr).toMatch(/Allowed choices are bash, zsh, fish/);
});
