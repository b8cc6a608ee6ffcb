import { once } from 'node:events';
import { exitCodeOfSignal } from './exit-codes.ts';

/** Signals that ask a program to terminate. */
export const ENDING: readonly NodeJS.Signals[] = ['SIGINT', 'SIGTERM', 'SIGHUP', 'SIGQUIT'];

/** Whether a signal asks the program to terminate. */
export const isEnding = (signal: NodeJS.Signals): boolean => ENDING.some((ending) => ending === signal);

/** Runs the work until it ends or one of the signals aborts it. Returns its exit code, or 128 + n after signal n. */
export async function untilSignalled(
  work: (signal: AbortSignal) => Promise<number>,
  ending: readonly NodeJS.Signals[] = ENDING,
): Promise<number> {
  const end = new AbortController();
  let received: NodeJS.Signals | undefined;
  const onSignal = (signal: NodeJS.Signals): void => {
    received ??= signal;
    end.abort();
  };
  for (const signal of ending) process.on(signal, onSignal);
  try {
    const code = await work(end.signal);
    return received === undefined ? code : exitCodeOfSignal(received);
  } finally {
    for (const signal of ending) process.off(signal, onSignal);
  }
}

/** Waits until the signal aborts; returns at once if it already has. */
export const aborted = async (signal: AbortSignal): Promise<void> => {
  if (!signal.aborted) await once(signal, 'abort');
};
