import { type ChildProcessByStdio, spawn } from 'node:child_process';
import { createInterface } from 'node:readline';
import type { Readable, Writable } from 'node:stream';
import { fileURLToPath } from 'node:url';
import { now } from '../../time.ts';
import type { Relayed } from './relayed.ts';

/** Of two signals that follow one another faster than that one may have been merged in one process, but not in the other. */
const MERGING = 1000;

interface Sighting {
  readonly signal: Relayed;
  readonly at: number;
}

/**
 * Tells signals for the whole process group, such as the terminal's, from those for this process alone: a second process
 * in the group sees only the former. (Node does not say who sent a signal.)
 */
export class Bystander {
  readonly #process: ChildProcessByStdio<Writable, Readable, null>;
  readonly #waiting: ((line: string) => void)[] = [];
  #sightings: Sighting[] = [];

  constructor() {
    const program = fileURLToPath(new URL('bystander-main.js', import.meta.url));
    this.#process = spawn(process.execPath, [program], { stdio: ['pipe', 'pipe', 'ignore'] });
    this.#process.unref();
    // It may be killed: then it has seen nothing.
    this.#process.on('error', () => this.#answer(''));
    this.#process.stdin.on('error', () => {});
    createInterface(this.#process.stdout)
      .on('line', (line) => this.#waiting.shift()?.(line))
      .on('close', () => this.#answer(''));
  }

  /** Resolves once it watches. */
  async ready(): Promise<void> {
    await this.#ask();
  }

  /** Whether a signal that has just arrived here went to the whole group. */
  async saw(signal: Relayed): Promise<boolean> {
    const arrived = now();
    const line = await this.#ask();
    const fresh = line.split(' ').filter((name) => name !== '') as Relayed[];
    const all = [...this.#sightings, ...fresh.map((name) => ({ signal: name, at: now() }))];
    this.#sightings = all.filter(({ at }) => at > arrived - MERGING);
    const match = this.#sightings.findIndex((sighting) => sighting.signal === signal);
    if (match >= 0) this.#sightings.splice(match, 1);
    return match >= 0;
  }

  end(): void {
    this.#process.kill('SIGKILL');
  }

  #ask(): Promise<string> {
    return new Promise((resolve) => {
      if (!this.#process.stdin.writable || this.#process.exitCode !== null) return resolve('');
      this.#waiting.push(resolve);
      // It may have been stopped with us, and not been continued.
      this.#process.kill('SIGCONT');
      this.#process.stdin.write('\n');
    });
  }

  #answer(line: string): void {
    for (const answer of this.#waiting.splice(0)) answer(line);
  }
}
