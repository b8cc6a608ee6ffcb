import { fileURLToPath } from 'node:url';
import { JsonProcess } from '../setting/json-process.mjs';

const CYCLER = fileURLToPath(new URL('cycler.mjs', import.meta.url));

/** A contestant in a process of its own, as in production: what others do to the heap and to compiled code is not its. */
export async function apart(id, url) {
  const cycler = new JsonProcess(process.execPath, [CYCLER, id, url]);
  return {
    id,
    title: await cycler.ask('title'),
    /** Timed over there. */
    cycles: (name, times) => cycler.ask('cycles', { name, times }),
    stop: () => cycler.stop(),
  };
}
