import { mkdirSync, writeFileSync } from 'node:fs';
import { number } from './format.mjs';
import { goals, goalTable, lostTo } from './goals.mjs';
import { growth, ranges } from './plots.mjs';
import { WHY } from './prose.mjs';
import { ratio } from './stats.mjs';
import { drains, idleCosts, timings, waiterCosts } from './timings.mjs';

const LEGS = {
  direct: 'One machine',
  memory: "One machine, with etcd's data in memory, so that writes wait for no disk",
  near: 'Through the proxy, nothing added',
  far: '2 ms added each way',
};
const legsOf = (section) => Object.entries(LEGS).filter(([leg]) => section[leg]);

/** Returns the sections of the report as pairs of heading and text, also readable on a terminal. */
export function text(results) {
  return [
    ['Goals', goalTable(goals(results))],
    ['Where a peer is faster, and why', losses(results)],
    [
      'Uncontended: acquire + release',
      legs(results.uncontended, { floor: 'writes', counts: results.uncontended.counts }),
    ],
    [
      'Hand-over: release to the next acquire',
      legs(results.handOver, { floor: 'event', unit: 'hand-over', counts: results.handOver.counts }),
    ],
    ['8 contenders in 8 processes', `${legs(results.contenders, {})}\n\n${fairness(results.contenders)}`],
    ['Draining a queue', drainLegs(results.drain)],
    ['Waiters of one process', waiterCosts(results.waiters)],
    [
      'Idle',
      `TTL ${results.idle.ttl} s: a waiting request notices a dead connection within ${number(results.idle.ttl / 3)} s. It reads the queue a little earlier, in time to ask three members, while its poll stays open.\n\n${idleCosts(results.idle)}`,
    ],
    ['`debug` off', debugText(results.debug)],
  ];
}

/** The plots of the report, by name. */
export const plots = async (results) => ({
  uncontended: await ranges('ms per cycle', pickLegs(results.uncontended)),
  'hand-over': await ranges('ms per hand-over', pickLegs(results.handOver)),
  contenders: await ranges('ms per cycle of 8 processes', pickLegs(results.contenders)),
  draining: await growth('ms per hand-over', pickLegs(results.drain)),
});

/** Which plot belongs to the section whose heading starts like this. */
export const PICTURES = {
  Uncontended: 'uncontended',
  'Hand-over': 'hand-over',
  '8 contenders': 'contenders',
  Draining: 'draining',
};

/**
 * Writes a report and its plots.
 * @param file name of the report
 * @param also what to add to the first line
 * @param sections pairs of heading and text
 * @param drawn plots as SVG, by name
 */
export function write({ file, title, also = '', machine, how, sections, drawn, pictures }, directory) {
  const to = new URL('plots/', directory);
  mkdirSync(to, { recursive: true });
  for (const [name, svg] of Object.entries(drawn)) writeFileSync(new URL(`${name}.svg`, to), svg);
  const written = sections.map(([heading, body]) => {
    const plot = Object.entries(pictures).find(([start]) => heading.startsWith(start))?.[1];
    return `## ${heading}\n\n${plot ? `![${heading}](plots/${plot}.svg)\n\n` : ''}${body}\n`;
  });
  const about = machine.map((line) => `- ${line}`).join('\n');
  const head = `# ${title}\n\nWritten by \`npm run bench\`.${also}\n\n${about}\n\n${how}\n`;
  writeFileSync(new URL(file, directory), [head, ...written].join('\n'));
}

const pickLegs = ({ direct, far }) => ({ direct, far });

const legs = (section, options) =>
  legsOf(section)
    .map(([leg, title]) => `**${title}**\n\n${timings(section[leg], options)}`)
    .join('\n\n');

const drainLegs = (section) =>
  legsOf(section)
    .map(([leg, title]) => `**${title}**\n\n${drains(section[leg], leg === 'direct' ? section.counts : undefined)}`)
    .join('\n\n');

const fairness = ({ direct: { titles, fairness } }) =>
  Object.entries(fairness)
    .map(
      ([id, shares]) =>
        `- ${titles[id]}: fewest ÷ most turns of a process, per round: ${shares.map((share) => `${Math.round(share * 100)} %`).join(', ')}`,
    )
    .join('\n');

function debugText({ cut, rounds, cpu }) {
  const shown = (of) => `${number(of.median)} (${number(of.low)} – ${number(of.high)})`;
  const besides = (id) =>
    `time per cycle ${shown(ratio(rounds.with, rounds[id]))}, CPU time per cycle ${shown(ratio(cpu.with, cpu[id]))}`;
  return `The package, in alternating rounds with two copies:

- ÷ a copy without its ${cut} calls of \`debug\`: ${besides('without')}
- ÷ an identical copy: ${besides('alike')}`;
}

function losses({ uncontended, handOver, contenders, drain }) {
  const drained = (leg) =>
    Object.entries(leg.bySize).map(([size, rounds]) => [
      `a queue of ${size} draining`,
      'drain',
      { titles: leg.titles, rounds },
    ]);
  const all = Object.entries({
    direct: 'on one machine',
    memory: 'with its data in memory',
    far: 'with 2 ms each way',
  }).flatMap(([leg, where]) =>
    [
      ['uncontended', 'uncontended', uncontended[leg]],
      ['hand-over', 'handOver', handOver[leg]],
      ['8 processes', 'contenders', contenders[leg]],
      ...(drain[leg] ? drained(drain[leg]) : []),
    ]
      .filter(([, , measured]) => measured)
      .flatMap(([what, section, measured]) =>
        lostTo(measured).map(
          ({ id, title, share }) =>
            `- ${what}, ${where}: ${title} takes ${number(share)} times our time. ${WHY[section][id]}`,
        ),
      ),
  );
  return all.length > 0 ? all.join('\n') : 'No peer was faster in this run.';
}
