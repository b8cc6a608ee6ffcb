import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { onTestFinished } from 'vitest';
import { findPython } from '../../scripts/find.mjs';
import { isThere } from '../support/processes.ts';
import { temporaryDirectory } from '../support/temporary.ts';
import { until } from '../support/until.ts';

const PROGRAM = fileURLToPath(new URL('witness.py', import.meta.url));

export interface Note {
  readonly pid: number;
  /** `begin`, or the name of a signal. */
  readonly what: string;
}

export interface Witness {
  /** The command to run. */
  readonly command: readonly string[];
  notes(): Note[];
  /** The signals that each process got, in order; the parent first. */
  signals(): string[][];
  /** Waits until all processes have begun; resolves to their pids, the parent's first. */
  begun(): Promise<number[]>;
  /** When each process last ran, on the clock of `process.hrtime`; needs `--clock`. */
  lastDoings(): bigint[];
}

/** A job that records the signals that it and its children get. Its processes are killed after the test. */
export function witness(children = 1, ...flags: ('--stubborn' | '--clock')[]): Witness {
  const file = join(temporaryDirectory(), 'notes');
  const notes = (): Note[] =>
    (existsSync(file) ? readFileSync(file, 'utf8') : '')
      .split('\n')
      .slice(0, -1)
      .map((line) => ({ pid: Number(line.split(' ')[0]), what: line.split(' ')[1] ?? '' }));
  const pids = (): number[] => notes().flatMap(({ pid, what }) => (what === 'begin' ? pid : []));
  onTestFinished(() => {
    for (const pid of pids()) if (isThere(pid)) process.kill(pid, 'SIGKILL');
  });
  return {
    command: [findPython() ?? 'python3', PROGRAM, file, String(children), ...flags],
    notes,
    signals: () =>
      pids()
        .sort((a, b) => a - b)
        .map((pid) => notes().flatMap((note) => (note.pid === pid && note.what !== 'begin' ? note.what : []))),
    begun: async () => (await until(pids, (all) => all.length === children + 1)).sort((a, b) => a - b),
    lastDoings: () => pids().map((pid) => BigInt(readFileSync(`${file}.${pid}`, 'utf8'))),
  };
}
