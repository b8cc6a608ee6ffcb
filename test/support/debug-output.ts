import { format } from 'node:util';
import createDebug from 'debug';

/**
 * Returns everything that `DEBUG=etcd-v2-lock:*` would print during the work, and the result of the work.
 * @param onLine called when a line is printed
 */
export async function debugOutput<T>(
  work: () => Promise<T>,
  onLine: (line: string) => void = () => {},
): Promise<{ readonly lines: string[]; readonly result: T }> {
  const lines: string[] = [];
  const { log } = createDebug;
  createDebug.log = (...words: unknown[]) => {
    const line = format(...words);
    lines.push(line);
    onLine(line);
  };
  createDebug.enable('etcd-v2-lock:*');
  try {
    const result = await work();
    return { lines, result };
  } finally {
    createDebug.disable();
    createDebug.log = log;
  }
}
