import { parse, View } from 'vega';
import { compile } from 'vega-lite';
import { summary } from './stats.mjs';

const LEGS = { direct: 'one machine', far: '2 ms added each way' };
/** Legs are stacked vertically, each with its name as heading. */
const LEG = {
  field: 'leg',
  title: null,
  sort: Object.values(LEGS),
  header: { labelOrient: 'top', labelAnchor: 'start', labelFontWeight: 'bold' },
};
const plain = (title) => title.replaceAll('`', '');

/** Draws a dot for the median of each contestant, and a line from the lowest to the highest median of a round. */
export function ranges(title, sections) {
  const values = Object.entries(sections).flatMap(([leg, { titles, rounds }]) =>
    Object.entries(rounds).map(([id, own]) => ({ leg: LEGS[leg], who: plain(titles[id]), ...summary(own) })),
  );
  const x = { type: 'quantitative', scale: { type: 'log' }, title };
  return svg({
    data: { values },
    facet: { row: LEG },
    spec: {
      width: 480,
      encoding: {
        y: { field: 'who', type: 'nominal', title: null, sort: { field: 'median' }, axis: { labelLimit: 260 } },
      },
      layer: [
        {
          mark: { type: 'rule', strokeWidth: 3, opacity: 0.4 },
          encoding: { x: { ...x, field: 'low' }, x2: { field: 'high' } },
        },
        { mark: { type: 'point', filled: true, size: 60 }, encoding: { x: { ...x, field: 'median' } } },
        {
          mark: { type: 'text', dy: -9, fontSize: 10 },
          encoding: { x: { ...x, field: 'median' }, text: { field: 'median', format: '.3~r' } },
        },
      ],
    },
  });
}

/** Draws time per hand-over against the length of the queue. */
export function growth(title, sections) {
  const values = Object.entries(sections).flatMap(([leg, { titles, bySize }]) =>
    Object.entries(bySize).flatMap(([size, rounds]) =>
      Object.entries(rounds).map(([id, own]) => ({
        leg: LEGS[leg],
        who: plain(titles[id]),
        size: Number(size),
        ...summary(own),
      })),
    ),
  );
  return svg({
    data: { values },
    facet: { row: LEG },
    resolve: { scale: { y: 'independent' } },
    spec: {
      width: 480,
      height: 160,
      mark: { type: 'line', point: true },
      encoding: {
        x: {
          field: 'size',
          type: 'quantitative',
          scale: { type: 'log' },
          title: 'waiters',
          axis: { values: [10, 100, 1000] },
        },
        y: { field: 'median', type: 'quantitative', title, scale: { zero: true } },
        color: { field: 'who', type: 'nominal', title: null },
      },
    },
  });
}

function svg(spec) {
  const { spec: compiled } = compile({ ...spec, background: 'white', padding: 10 });
  return new View(parse(compiled), { renderer: 'none' }).toSVG();
}
