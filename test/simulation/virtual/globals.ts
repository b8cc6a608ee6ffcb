import { currentProcess, Timer } from './process.ts';

/** A warning that a fault explains: a tick of a job was not run. */
const OF_A_JOB = 'ETCD_LOCK_TICK_NOT_DONE';

/**
 * Puts the clock, the timers and the randomness of the running process in the place of the real ones. Returns a function that undoes that.
 * @param stackTraces whether errors have stack traces, which take long to make
 */
export function installGlobals({ stackTraces }: { stackTraces: boolean }): () => void {
  const restore: (() => void)[] = [];
  const replace = (on: object, name: string, value: unknown): void => {
    const before = Object.getOwnPropertyDescriptor(on, name);
    Object.defineProperty(on, name, { value, configurable: true, writable: true });
    restore.unshift(() => {
      if (before) Object.defineProperty(on, name, before);
      else Reflect.deleteProperty(on, name);
    });
  };
  const timer = (fn: (...args: unknown[]) => void, ms: number | undefined, args: unknown[], repeats = false): Timer =>
    new Timer(currentProcess(), () => fn(...args), Math.max(Number(ms) || 1, 1), repeats);
  const clear = (from: unknown): void => {
    if (from instanceof Timer) from.close();
  };
  replace(globalThis, 'setTimeout', (fn: () => void, ms?: number, ...args: unknown[]) => timer(fn, ms, args));
  replace(globalThis, 'setInterval', (fn: () => void, ms?: number, ...args: unknown[]) => timer(fn, ms, args, true));
  replace(globalThis, 'setImmediate', (fn: (...args: unknown[]) => void, ...args: unknown[]) => {
    return new Timer(currentProcess(), () => fn(...args), 0);
  });
  for (const name of ['clearTimeout', 'clearInterval', 'clearImmediate']) replace(globalThis, name, clear);
  if (!stackTraces) replace(Error, 'stackTraceLimit', 0);
  const { emitWarning } = process;
  replace(process, 'emitWarning', (warning: string, options: NodeJS.EmitWarningOptions = {}) => {
    if (options.code !== OF_A_JOB) emitWarning.call(process, warning, options);
  });
  // A program may read it when it is loaded, so it is the same for all processes.
  replace(process, 'pid', 1);
  replace(performance, 'now', () => currentProcess().now());
  replace(performance, 'timeOrigin', 0);
  replace(Math, 'random', () => currentProcess().random.next());
  const RealDate = Date;
  const VirtualDate = class extends RealDate {
    constructor(...args: []) {
      super(...((args.length === 0 ? [currentProcess().wall()] : args) as []));
    }
    static override now = (): number => currentProcess().wall();
  };
  replace(globalThis, 'Date', VirtualDate);
  return () => {
    for (const undo of restore) undo();
  };
}
