import { type OutputLine, type Styled, styled } from '../streams.ts';

/** What a contender does. `stopped`: it is suspended by SIGSTOP, and still believes that it holds the lock. */
export type State = 'idle' | 'waits' | 'holds' | 'stopped';

/** What happens to a contender at one moment. */
export type Incident = 'killed' | 'refused';

interface Look {
  readonly character: string;
  readonly style: Styled['style'];
  /** What the legend says. */
  readonly about: string;
}

const LOOKS: Readonly<Record<Exclude<State, 'idle'> | Incident, Look>> = {
  holds: { character: '█', style: 'green', about: 'holds' },
  waits: { character: '·', style: 'dim', about: 'waits' },
  stopped: { character: '▒', style: 'magenta', about: 'stopped' },
  killed: { character: '✗', style: 'red', about: 'killed' },
  refused: { character: '!', style: 'red', about: 'write refused' },
};

interface Change {
  readonly state: State;
  readonly at: number;
}

interface Lane {
  readonly changes: Change[];
  readonly incidents: { readonly what: Incident; readonly at: number }[];
}

export interface TimelineSize {
  /** Characters per line. */
  readonly width: number;
  /** The time up to which the lanes are drawn. */
  readonly now: number;
  /** The end of the time axis; or `now`, if that is later. */
  readonly end: number;
}

interface Scale {
  readonly columns: number;
  /** Milliseconds. */
  readonly perColumn: number;
}

/** Fewest characters between two labels of the time axis. */
const LABEL_GAP = 8;

/** Records what each contender does at which time, in milliseconds, and draws it: a lane for each contender. */
export class Timeline {
  readonly #lanes: ReadonlyMap<string, Lane>;
  /** When the timeline begins. */
  readonly start: number;

  constructor(contenders: readonly string[], start: number) {
    this.#lanes = new Map(contenders.map((name) => [name, { changes: [], incidents: [] }]));
    this.start = start;
  }

  /** Records that a contender does something else from this time on. */
  enter(contender: string, state: State, at: number): void {
    this.#lanes.get(contender)?.changes.push({ state, at });
  }

  /** Records what happened to a contender. */
  mark(contender: string, what: Incident, at: number): void {
    this.#lanes.get(contender)?.incidents.push({ what, at });
  }

  /** How many holds began before another one had ended. */
  get overlaps(): number {
    const holds = [...this.#lanes.values()]
      .flatMap(({ changes }) => changes.map(({ state, at }, i) => ({ state, at, end: changes[i + 1]?.at ?? Infinity })))
      .filter(({ state }) => state === 'holds')
      .sort((a, b) => a.at - b.at);
    let latestEnd = Number.NEGATIVE_INFINITY;
    return holds.reduce((overlaps, { at, end }) => {
      const isEarly = at < latestEnd;
      latestEnd = Math.max(latestEnd, end);
      return isEarly ? overlaps + 1 : overlaps;
    }, 0);
  }

  /** Returns the lanes, the time axis, and a legend of what they show. */
  draw({ width, now, end }: TimelineSize): OutputLine[] {
    const names = [...this.#lanes.keys()];
    const nameWidth = Math.max(...names.map(({ length }) => length)) + 2;
    const columns = width - nameWidth - 2;
    const perColumn = (Math.max(now, end) - this.start) / columns;
    const lanes = [...this.#lanes].map(([name, lane]) => [
      `  ${name.padEnd(nameWidth)}`,
      ...runs(this.#cells(lane, now, { columns, perColumn })),
    ]);
    return [
      ...lanes,
      [styled('dim', ' '.repeat(nameWidth + 2) + axis({ columns, perColumn }))],
      this.#legend(nameWidth),
    ];
  }

  #cells({ changes, incidents }: Lane, now: number, { columns, perColumn }: Scale): (Look | undefined)[] {
    const cells = Array.from({ length: columns }, (_, column) => {
      const middle = this.start + (column + 0.5) * perColumn;
      const state = changes.findLast(({ at }) => at <= middle)?.state ?? 'idle';
      return state === 'idle' || middle > now ? undefined : LOOKS[state];
    });
    for (const { what, at } of incidents) {
      const column = Math.floor((at - this.start) / perColumn);
      cells[Math.min(columns - 1, Math.max(0, column))] = LOOKS[what];
    }
    return cells;
  }

  #legend(nameWidth: number): OutputLine {
    const lanes = [...this.#lanes.values()];
    const shown = new Set<string>(['holds', 'waits']);
    for (const { changes, incidents } of lanes) {
      for (const { state } of changes) shown.add(state);
      for (const { what } of incidents) shown.add(what);
    }
    const looks = Object.entries(LOOKS).filter(([what]) => shown.has(what));
    const items = looks.flatMap(([, { character, style, about }]) => ['   ', styled(style, character), ` ${about}`]);
    return [' '.repeat(nameWidth - 1), ...items];
  }
}

/** Joins equal neighbours into one text. */
function runs(cells: readonly (Look | undefined)[]): (string | Styled)[] {
  const pieces: { look: Look | undefined; length: number }[] = [];
  for (const look of cells) {
    const last = pieces.at(-1);
    if (last?.look === look && last) last.length += 1;
    else pieces.push({ look, length: 1 });
  }
  if (pieces.at(-1)?.look === undefined) pieces.pop();
  return pieces.map(({ look, length }) =>
    look ? styled(look.style, look.character.repeat(length)) : ' '.repeat(length),
  );
}

/** Returns the labels of the time axis: whole seconds, each at its column. */
function axis({ columns, perColumn }: Scale): string {
  const step = [1, 2, 5, 10, 20, 60].find((seconds) => (seconds * 1000) / perColumn >= LABEL_GAP) ?? 120;
  let line = '';
  for (let seconds = 0; ; seconds += step) {
    const label = `${seconds} s`;
    const column = Math.round((seconds * 1000) / perColumn);
    if (column + label.length > columns) return line;
    line = line.padEnd(column) + label;
  }
}
