import { format } from 'node:util';
import debugOf from 'debug';
import { printable } from './printable.ts';

export type Debug = (message: string, ...values: readonly unknown[]) => void;

/**
 * Returns a function that logs to stderr when `DEBUG` names `etcd-v2-lock:<area>`. The function takes the arguments
 * of `util.format`. Each call logs one line: unprintable characters in names, keys, values and errors are escaped.
 */
export function createDebug(area: string): Debug {
  const log = debugOf(`etcd-v2-lock:${area}`);
  return (message, ...values) => {
    if (log.enabled) log('%s', printable(format(message, ...values.map(inOneLine))));
  };
}

function inOneLine(value: unknown): unknown {
  if (value instanceof Error) return String(value);
  if (typeof value !== 'object') return value;
  try {
    return JSON.stringify(value);
  } catch {
    return Object.prototype.toString.call(value); // the caller's own abort reason, with a bigint or a cycle in it
  }
}
