import { computed, signal } from '@preact/signals';
import { printable } from '../src/base/printable.ts';
import type { ShownQueue } from '../src/cli/ui/shapes.ts';
import { chosen, type Lane, lanesOf, type Mark, type Span, ticksIn } from './spans.ts';
import { clock, queue as shownQueue } from './state.ts';
import { dayText, timeText } from './words.ts';

/** Milliseconds that the graphic covers: the last ones, or all that is recorded. */
const RANGES = {
  'all that is recorded': undefined,
  'the last hour': 3_600_000,
  'the last 10 minutes': 600_000,
  'the last minute': 60_000,
} as const;
type Range = keyof typeof RANGES;

const range = signal<Range>('all that is recorded');

/** Number of rows, and of labels on the time axis. */
const MOST_ROWS = 20;
const MOST_TICKS = 4;
/** Milliseconds that the graphic covers at least. */
const SHORTEST = 10_000;
/** Sizes in pixels. The width is that of the page, so positions in it are percentages. */
const ROW = 36;
const BAR_AT = 22;
const AXIS = 24;
const LONGEST_NAME = 60;
const DAY = 86_400_000;

const lanes = computed((): readonly Lane[] => (shownQueue.value ? lanesOf(shownQueue.value) : []));

interface Window {
  readonly from: number;
  readonly to: number;
}

/** Returns the position of a time; marks at both ends fit in. */
const xOf = (at: number, { from, to }: Window): number => 1 + 98 * Math.min(1, Math.max(0, (at - from) / (to - from)));

const percent = (value: number): string => `${value.toFixed(3)}%`;

const isIn = ({ from, to }: { readonly from: number; readonly to: number | undefined }, window: Window): boolean =>
  from <= window.to && (to ?? window.to) >= window.from;

function Bar({
  span: { state, from, to },
  y,
  window,
}: {
  readonly span: Span;
  readonly y: number;
  readonly window: Window;
}) {
  const [begin, end] = [xOf(from, window), xOf(to ?? window.to, window)];
  const height = state === 'holds' ? 12 : 4;
  return (
    <rect
      class={`bar bar-${state}`}
      x={percent(begin)}
      width={percent(end - begin)}
      y={y - height / 2}
      height={height}
    />
  );
}

/** The end of an entry, or a change of it: a line, a cross or a circle. */
function Sign({ kind, x, y }: { readonly kind: Mark['kind']; readonly x: string; readonly y: number }) {
  if (kind === 'released' || kind === 'left') return <line class="sign" x1={x} x2={x} y1={y - 8} y2={y + 8} />;
  if (kind === 're-created' || kind === 'changed') return <circle class="sign" cx={x} cy={y} r={4} />;
  return (
    <svg x={x} y={y} overflow="visible" aria-hidden="true">
      <path class="sign-edge" d="M-5-5 5 5M-5 5 5-5" />
      <path class="sign sign-bad" d="M-5-5 5 5M-5 5 5-5" />
    </svg>
  );
}

function Row({
  lane,
  y,
  window,
  isOneStore,
}: {
  readonly lane: Lane;
  readonly y: number;
  readonly window: Window;
  readonly isOneStore: boolean;
}) {
  const { api, spans, marks } = lane;
  // Not by code units: half a surrogate pair cannot be shown.
  const characters = [...printable(lane.name)];
  const name = characters.slice(0, LONGEST_NAME).join('') + (characters.length > LONGEST_NAME ? '…' : '');
  const bar = y + BAR_AT;
  return (
    <g>
      <text class="row-name" x="1%" y={y + 12}>
        {isOneStore ? name : `${name} (${api})`}
      </text>
      {spans
        .filter((span) => isIn(span, window) && (span.from !== span.to || span.state === 'holds'))
        .map((span) => (
          <Bar key={`${span.from} ${span.state}`} span={span} y={bar} window={window} />
        ))}
      {marks
        .filter(({ at }) => at >= window.from)
        .map(({ at, kind }) => (
          <Sign key={`${at} ${kind}`} kind={kind} x={percent(xOf(at, window))} y={bar} />
        ))}
    </g>
  );
}

function Axis({ window, height }: { readonly window: Window; readonly height: number }) {
  const { step, at } = ticksIn(window.from, window.to, MOST_TICKS);
  const isLong = window.to - window.from > DAY;
  return at.map((tick) => {
    const x = xOf(tick, window);
    const anchor = x < 12 ? 'start' : x > 88 ? 'end' : 'middle';
    return (
      <g key={tick}>
        <line class="grid" x1={percent(x)} x2={percent(x)} y1={0} y2={height - AXIS} />
        <text class="axis" x={percent(x)} y={height - 6} text-anchor={anchor}>
          {isLong ? dayText(tick, step < DAY) : timeText(tick)}
        </text>
      </g>
    );
  });
}

/** Returns what the graphic shows, for those who do not see it. */
function textOf({ queues, history }: ShownQueue, window: Window, count: number): string {
  const now = queues.map(({ api, holders, waiters }) => `on etcd ${api}, ${holders} hold and ${waiters} wait`);
  const bad = history.filter(({ kind }) => kind === 'expired' || kind === 'gone' || kind === 'wiped').length;
  return (
    `Timeline of ${count} clients since ${timeText(window.from)}: ${now.length > 0 ? now.join(', ') : 'nobody holds the lock now'}. ` +
    `${bad} entries have expired or were lost. The history below has each event.`
  );
}

const LEGEND = [
  ['waits', <rect class="bar bar-waits" x="1" y="6" width="18" height="4" />],
  ['holds', <rect class="bar bar-holds" x="1" y="2" width="18" height="12" />],
  ['released, or left the queue', <line class="sign" x1="10" x2="10" y1="0" y2="16" />],
  ['expired, or lost', <path class="sign sign-bad" d="M5 3 15 13M5 13 15 3" />],
  ['changed', <circle class="sign" cx="10" cy="8" r="4" />],
] as const;

const Legend = () => (
  <ul class="legend">
    {LEGEND.map(([text, sign]) => (
      <li key={text}>
        <svg width="20" height="16" aria-hidden="true">
          {sign}
        </svg>{' '}
        {text}
      </li>
    ))}
  </ul>
);

/** What has happened to a lock, as a graphic: a row for each client, from left to right the time. */
export function Timeline({ queue }: { readonly queue: ShownQueue }) {
  if (lanes.value.length === 0) return null;
  const isOneStore = queue.stores.length === 1;
  // What happens during an outage is not known.
  const seenUntil = Math.min(
    clock.value,
    ...queue.stores.map(({ outage }) => outage?.since ?? Number.POSITIVE_INFINITY),
  );
  const wanted = RANGES[range.value];
  const first = Math.min(...lanes.value.map(({ from }) => from));
  const to = Math.max(seenUntil, queue.recordedSince + 1);
  const from = Math.min(Math.max(queue.recordedSince, wanted === undefined ? first : to - wanted), to - SHORTEST);
  const window = { from, to };
  const all = lanes.value.filter((lane) => isIn(lane, window));
  const shown = chosen(all, MOST_ROWS);
  const height = shown.length * ROW + AXIS;
  return (
    <section aria-label="timeline">
      <h2>Timeline</h2>
      <label>
        Show{' '}
        <select
          value={range.value}
          onChange={(event) => {
            range.value = event.currentTarget.value as Range;
          }}
        >
          {Object.keys(RANGES).map((name) => (
            <option key={name}>{name}</option>
          ))}
        </select>
      </label>
      <svg class="timeline" role="img" aria-label={textOf(queue, window, all.length)} width="100%" height={height}>
        <Axis window={window} height={height} />
        {shown.map((lane, at) => (
          <Row
            key={`${lane.api} ${lane.name} ${lane.from}`}
            lane={lane}
            y={at * ROW}
            window={window}
            isOneStore={isOneStore}
          />
        ))}
      </svg>
      <Legend />
      {all.length > shown.length && <p>{all.length - shown.length} further clients are not drawn.</p>}
    </section>
  );
}
