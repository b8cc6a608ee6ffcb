import { fileURLToPath } from 'node:url';
import { JsonProcess } from '../setting/json-process.mjs';

const CYCLER = fileURLToPath(new URL('cycler.mjs', import.meta.url));

/** Starts a contestant in its own process, as in production, so that others affect neither its heap nor its compiled code. */
export async function apart(id, url) {
  const cycler = new JsonProcess(process.execPath, [CYCLER, id, url]);
  return {
    id: id.replace(/-.*/, ''),
    title: await cycler.ask('title'),
    /** Timed in that process. */
    cycles: (name, times) => cycler.ask('cycles', { name, times }),
    /** The same with so many names, each of which is used once. */
    onceEach: (name, times) => cycler.ask('onceEach', { name, times }),
    /** Resolves to the milliseconds per cycle, and those of processor time, if the process uses that many locks at once. */
    together: (name, times, locks) => cycler.ask('together', { name, times, locks }),
    stop: () => cycler.stop(),
  };
}
