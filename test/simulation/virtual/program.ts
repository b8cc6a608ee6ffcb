import * as asyncHooks from 'node:async_hooks';
import * as crypto from 'node:crypto';
import { createRequire } from 'node:module';
import * as os from 'node:os';
import { Script } from 'node:vm';
import { simulatedDns } from '../network/dns.ts';
import { simulatedHttp } from '../network/http.ts';
import { SharedStorage } from './context.ts';
import { currentProcess } from './process.ts';

const nodeRequire = createRequire(import.meta.url);

/** The parts of Node's `crypto` that choose something at random, with the randomness of the running process. */
const seededCrypto = {
  ...crypto,
  randomBytes: (length: number) => currentProcess().random.bytes(length),
  randomInt: (most: number) => currentProcess().random.integer(0, most - 1),
  randomFillSync: (into: Uint8Array) => {
    into.set(currentProcess().random.bytes(into.length));
    return into;
  },
  randomUUID: () => {
    const hex = currentProcess().random.bytes(16).toString('hex');
    const variant = '89ab'[Number.parseInt(hex[16] ?? '0', 16) % 4];
    return `${hex.slice(0, 8)}-${hex.slice(8, 12)}-4${hex.slice(13, 16)}-${variant}${hex.slice(17, 20)}-${hex.slice(20)}`;
  },
};

/** What a simulated process has in the place of modules of Node. */
const REPLACED: Readonly<Record<string, unknown>> = {
  crypto: seededCrypto,
  os: { ...os, hostname: () => 'host' },
  async_hooks: { ...asyncHooks, AsyncLocalStorage: SharedStorage },
  'dns/promises': simulatedDns,
  http: simulatedHttp,
};

const requireSimulated = (name: string): unknown => REPLACED[name.replace(/^node:/, '')] ?? nodeRequire(name);

type Load = (require: (name: string) => unknown, module: { exports: object }, exports: object, own: object) => void;

/** What a program is wrapped in. What it keeps in `globalThis` for all its copies in a process is not shared with other processes. */
const WRAPPER = '(function (require, module, exports, globalThis) {';

/**
 * A bundled program, of which each simulated process has an instance of its own. Instances are used again: V8 does not share what it has
 * learned of a function between two instances, so a new one is slow.
 */
export class Program<Exports extends object> {
  readonly #load: Load;
  readonly #idle: Exports[] = [];
  /** What each instance has as its `globalThis`. */
  readonly #globals = new WeakMap<Exports, object>();

  /** @param file where the code is from, for stack traces and for the debugger */
  constructor(code: string, file: string) {
    const script = new Script(`${WRAPPER}${code}\n})`, { filename: file });
    this.#load = script.runInThisContext() as Load;
  }

  /** Returns an instance that no process uses. Call this in a step of the process. */
  take(): Exports {
    const idle = this.#idle.pop();
    if (idle) {
      for (const kept of this.keptBy(idle).values()) kept.clear();
      return idle;
    }
    const module = { exports: {} };
    const own = Object.create(globalThis) as object;
    this.#load(requireSimulated, module, module.exports, own);
    const instance = module.exports as Exports;
    this.#globals.set(instance, own);
    return instance;
  }

  /** Returns the sets and maps that an instance keeps in its `globalThis`, by name. */
  keptBy(instance: Exports): ReadonlyMap<string | symbol, Set<unknown> | Map<unknown, unknown>> {
    const kept = this.#globals.get(instance) ?? {};
    return new Map(Reflect.ownKeys(kept).map((name) => [name, Reflect.get(kept, name)]));
  }

  /** Call this when the process of an instance has ended, and has left nothing behind. */
  giveBack(instance: Exports): void {
    this.#idle.push(instance);
  }
}
