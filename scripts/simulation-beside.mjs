// The simulation beside other tests, which mostly wait: with a low priority, it gets the time that they leave.
import { spawn } from 'node:child_process';
import { closeSync, mkdtempSync, openSync, readFileSync, rmSync } from 'node:fs';
import { setPriority, tmpdir } from 'node:os';
import { join } from 'node:path';
import { root } from './run.mjs';

/** A lower one would get nothing at all beside programs that always run. */
const NICE = 5;

/**
 * Starts worlds, always the same ones. Returns a function that waits for their end, prints what they say and counts them as one check.
 * @param worlds how many
 */
export function beginSimulation(worlds) {
  const args = ['scripts/simulate.mjs', '--worlds', String(worlds), '--seed', '1'];
  const name = `node ${args.join(' ')}`;
  console.log(`\n> ${name}, beside the tests`);
  const directory = mkdtempSync(join(tmpdir(), 'simulation-'));
  const file = join(directory, 'output');
  const output = openSync(file, 'w');
  const child = spawn(process.execPath, args, { cwd: root, stdio: ['ignore', output, output] });
  closeSync(output);
  if (child.pid !== undefined) setPriority(child.pid, NICE);
  process.on('exit', () => child.kill());
  const ended = new Promise((resolve) => child.once('error', resolve).once('exit', resolve));
  return async () => {
    const code = await ended;
    console.log(`\n> ${name}\n${readFileSync(file, 'utf8')}`);
    rmSync(directory, { recursive: true });
    return code === 0 ? { passed: 1, failed: [] } : { passed: 0, failed: [name] };
  };
}
