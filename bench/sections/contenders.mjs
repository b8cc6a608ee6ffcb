import { randomUUID } from 'node:crypto';
import { fileURLToPath } from 'node:url';
import { startPython } from '../contestants/python.mjs';
import { JsonProcess } from '../setting/json-process.mjs';
import { runOn } from '../setting/processors.mjs';
import { alternate, among, titlesOf, WARM_UP } from './rounds.mjs';

const CONTENDER = fileURLToPath(new URL('../contestants/contender.mjs', import.meta.url));
const PROCESSES = 8;

/**
 * Measures milliseconds per cycle of 8 processes on one lock, and the fairness: fewest ÷ most turns of a process.
 * @param processors the processors the processes may run on
 */
export async function contenders(url, { rounds, seconds }, processors) {
  const teams = [
    team(
      'lock',
      'this package, `Lock`',
      () => new JsonProcess(...runOn(processors, process.execPath, [CONTENDER, url])),
    ),
    team('python', 'python-etcd `Lock`', () => startPython(url, processors)),
  ];
  return among(teams, async () => {
    for (const { contend } of teams) await contend(WARM_UP * seconds);
    const taken = await alternate(teams, rounds, ({ contend }) => contend(seconds));
    const of = (pick) => Object.fromEntries(Object.entries(taken).map(([id, all]) => [id, all.map(pick)]));
    return {
      titles: titlesOf(teams),
      rounds: of(({ perCycle }) => [perCycle]),
      fairness: of(({ fairness }) => fairness),
    };
  });
}

function team(id, title, start) {
  const processes = Array.from({ length: PROCESSES }, start);
  return {
    id,
    title,
    async contend(seconds) {
      const name = `contended-${randomUUID()}`;
      const begun = performance.now();
      const done = await Promise.all(processes.map((one) => one.ask('contend', { name, seconds })));
      const cycles = done.reduce((sum, count) => sum + count, 0);
      return { perCycle: (performance.now() - begun) / cycles, fairness: Math.min(...done) / Math.max(...done) };
    },
    stop: () => Promise.all(processes.map((one) => one.stop())),
  };
}
