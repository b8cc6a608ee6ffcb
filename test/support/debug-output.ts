import { format } from 'node:util';
import createDebug from 'debug';

/** Returns everything that `DEBUG=etcd-v2-lock:*` would print during the work, and the result of the work. */
export async function debugOutput<T>(
  work: () => Promise<T>,
): Promise<{ readonly lines: string[]; readonly result: T }> {
  const lines: string[] = [];
  const { log } = createDebug;
  createDebug.log = (...words: unknown[]) => lines.push(format(...words));
  createDebug.enable('etcd-v2-lock:*');
  try {
    const result = await work();
    return { lines, result };
  } finally {
    createDebug.disable();
    createDebug.log = log;
  }
}
