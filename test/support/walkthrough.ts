// A start page as its reader uses it: saves its files, runs its shell blocks in order, and returns what they print.
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { fileURLToPath } from 'node:url';
import { onTestFinished } from 'vitest';
import type { Page } from './readme.ts';
import { temporaryDirectory } from './temporary.ts';

const ROOT = fileURLToPath(new URL('../..', import.meta.url));
/** Printed between the outputs of two blocks. */
const BETWEEN = '\u001e';

/** A shell block. */
export interface Step {
  readonly code: string;
  /** The text block behind it, which is what it prints. */
  readonly shown: string;
}

/** The shell blocks of a page, each with what the page shows as its output. */
export const stepsOf = ({ blocks }: Page): Step[] =>
  blocks.flatMap(({ language, code }, i) => {
    const next = blocks[i + 1];
    return language === 'sh' ? { code, shown: next?.language === 'text' ? next.code : '' } : [];
  });

/** The files that a page tells its reader to save: blocks whose first line is a comment with a file name. */
const filesOf = ({ blocks }: Page): [name: string, content: string][] =>
  blocks.flatMap(({ code }) => {
    const [, name] = /^(?:\/\/|#) (\S+\.(?:go|js|mjs|py))\n/.exec(code) ?? [];
    return name === undefined ? [] : [[name, code]];
  });

export interface Surroundings {
  /** What is in place of these ports of `127.0.0.1` on the page. */
  readonly ports: { readonly 2379: string; readonly 4001?: string; readonly 4002?: string };
  /** Programs, each a line of a shell script that runs it. */
  readonly programs: Readonly<Record<string, string>>;
  /** Whether to run a step. Default: all. */
  readonly isRun?: (step: Step) => boolean;
}

/**
 * Follows a page in a new directory. Resolves to its steps, each with what it has printed on stdout and stderr, and rejects if a command
 * fails. Only ports differ from the page, and the schedule of `--once`, so that the hour of the test does not end between two runs.
 */
export async function follow(
  page: Page,
  { ports, programs, isRun = () => true }: Surroundings,
): Promise<(Step & { readonly printed: string })[]> {
  const directory = temporaryDirectory();
  const bin = join(directory, 'bin');
  const modules = join(directory, 'node_modules');
  for (const folder of [bin, modules]) mkdirSync(folder);
  symlinkSync(ROOT, join(modules, 'etcd-v2-lock'), 'dir');
  symlinkSync(bin, join(modules, '.bin'), 'dir');
  for (const [name, line] of Object.entries({
    'etcd-v2-lock': `exec '${process.execPath}' '${join(ROOT, 'dist/cli/main.js')}' "$@"`,
    node: `exec '${process.execPath}' "$@"`,
    npm: 'test "$1" = install',
    npx: 'exec "$@"',
    ...programs,
  }))
    writeFileSync(join(bin, name), `#!/bin/sh\n${line}\n`, { mode: 0o755 });
  const here = (code: string): string =>
    Object.entries(ports)
      .reduce(
        (result, [port, used]) =>
          result.replaceAll(`127.0.0.1:${port}`, `127.0.0.1:${used}`).replaceAll(`port=${port}`, `port=${used}`),
        code,
      )
      .replaceAll('--once 1h', '--once 366d');
  for (const [name, content] of filesOf(page)) writeFileSync(join(directory, name), here(content));
  const steps = stepsOf(page).filter(isRun);
  const script = steps.map(({ code }) => here(code)).join(`printf '${BETWEEN}'\n`);
  const { code, printed } = await runInGroup(script, directory, `${bin}:${process.env['PATH']}`);
  const outputs = printed.split(BETWEEN);
  if (code !== 0) throw new Error(`${page.file}: step ${outputs.length} exits with ${code}:\n${outputs.at(-1)}`);
  return steps.map((step, i) => ({ ...step, printed: outputs[i] ?? '' }));
}

/** Runs a shell script in a process group of its own. What it has started in the background ends with it. */
async function runInGroup(script: string, cwd: string, path: string): Promise<{ code: number; printed: string }> {
  const inherited = Object.entries(process.env).filter(([name]) => !/^(?:ETCD|VITEST|NODE_)/.test(name));
  const child = spawn('sh', ['-euc', `exec 2>&1\n${script}`], {
    cwd,
    detached: true,
    env: { ...Object.fromEntries(inherited), PATH: path },
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  const end = (): void => {
    try {
      if (child.pid !== undefined) process.kill(-child.pid, 'SIGKILL');
    } catch {
      // The group has ended.
    }
  };
  onTestFinished(end);
  const printed = text(child.stdout);
  const [code] = await once(child, 'exit');
  // Such a process has the stdout of the shell: without this, it would have no end.
  end();
  return { code, printed: await printed };
}

/** An output without what differs from run to run: ids, ports, process ids, numbers and the width of columns. */
export const comparable = (output: string): string =>
  output
    .replaceAll(/\b[0-9a-f]{32}\b/g, '<uuid>')
    .replaceAll(/[\w.-]+:\d+/g, '<label>')
    .replaceAll(/\d+/g, '<n>')
    .replaceAll(/ {2,}/g, '  ')
    .replaceAll(/ +$/gm, '')
    .trim();
