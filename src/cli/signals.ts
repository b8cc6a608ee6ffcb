import { once } from 'node:events';
import { exitCodeOfSignal } from './exit-codes.ts';

/** What people and supervisors end a program with. */
const ENDING = ['SIGINT', 'SIGTERM', 'SIGHUP', 'SIGQUIT'] as const;

export const isEnding = (signal: NodeJS.Signals): boolean => ENDING.some((ending) => ending === signal);

/** Runs the work until it ends by itself, or until a signal asks for its end; then the exit code tells which. */
export async function untilSignalled(work: (signal: AbortSignal) => Promise<number>): Promise<number> {
  const end = new AbortController();
  let by: NodeJS.Signals | undefined;
  const onSignal = (signal: NodeJS.Signals): void => {
    by ??= signal;
    end.abort();
  };
  for (const signal of ENDING) process.on(signal, onSignal);
  try {
    const code = await work(end.signal);
    return by === undefined ? code : exitCodeOfSignal(by);
  } finally {
    for (const signal of ENDING) process.off(signal, onSignal);
  }
}

export const aborted = async (signal: AbortSignal): Promise<void> => {
  if (!signal.aborted) await once(signal, 'abort');
};
