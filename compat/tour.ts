import { execFile } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { python } from '../test/support/python.ts';

const program = fileURLToPath(new URL('client.py', import.meta.url));

/** Runs client.py below a directory, without some of its steps. Returns the result of each step by its name. */
export async function tour(
  url: string,
  directory: string,
  without: readonly string[] = [],
): Promise<Record<string, unknown>> {
  const { hostname, port } = new URL(url);
  const { stdout } = await promisify(execFile)(python(), [program, hostname, port, directory, ...without]);
  const results = stdout.trim().split('\n');
  return Object.fromEntries(results.map((line) => JSON.parse(line)));
}
