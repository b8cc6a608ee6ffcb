import { subscribe, unsubscribe } from 'node:diagnostics_channel';
import { errorText } from '../../base/error-text.ts';
import { channelOf, type RequestTrace } from '../../manager/trace.ts';
import { complain } from '../streams.ts';

const seconds = (value = 0): string => `${value.toFixed(1)} s`;

export const acquiredText = (name: string, waited: number | undefined): string =>
  `acquired ${name} after ${seconds(waited)}`;

/** The line for each event of a request. A loss is not among them: the reason why the command was stopped is always printed. */
const LINES: Readonly<Record<string, (trace: RequestTrace) => string>> = {
  held: ({ name, waited, key, fencingToken }) => `${acquiredText(name, waited)}: ${key}, fencing token ${fencingToken}`,
  released: ({ name, held, key, cleanupError }) =>
    cleanupError === undefined
      ? `the hold of ${name} ended after ${seconds(held)}`
      : `cannot remove ${key} or set its TTL; retrying: ${errorText(cleanupError)}`,
};

/** Prints each step of the requests of this process on stderr. Returns a function that stops it. */
export function printSteps(): () => void {
  const listeners = Object.entries(LINES).map(([event, lineOf]) => ({
    channel: channelOf(event),
    print: (message: unknown): void => complain(lineOf(message as RequestTrace)),
  }));
  for (const { channel, print } of listeners) subscribe(channel, print);
  return () => {
    for (const { channel, print } of listeners) unsubscribe(channel, print);
  };
}
