import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { createInterface } from 'node:readline';

/** A long-lived process. Answers `{"id": 1, "op": …}` with `{"id": 1, "result": …}` or `{"id": 1, "error": …}`, one per line. */
export class JsonProcess {
  #child;
  #asked = new Map();
  #count = 0;

  constructor(program, args) {
    this.#child = spawn(program, args, { stdio: ['pipe', 'pipe', 'inherit'] });
    createInterface(this.#child.stdout).on('line', (line) => {
      const { id, result, error } = JSON.parse(line);
      const { resolve, reject } = this.#asked.get(id);
      this.#asked.delete(id);
      if (error === undefined) resolve(result);
      else reject(new Error(`${program} ${args.join(' ')}: ${error}`));
    });
    this.#child.once('exit', (code, signal) => {
      for (const { reject } of this.#asked.values()) reject(new Error(`${program} exited with ${code ?? signal}`));
    });
  }

  ask(op, args = {}) {
    const id = ++this.#count;
    return new Promise((resolve, reject) => {
      this.#asked.set(id, { resolve, reject });
      this.#child.stdin.write(`${JSON.stringify({ id, op, ...args })}\n`);
    });
  }

  async stop() {
    const exited = once(this.#child, 'exit');
    this.#child.stdin.end();
    await exited;
  }
}
