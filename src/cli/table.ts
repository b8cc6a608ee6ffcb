import { printable } from '../base/printable.ts';
import { type OutputLine, outputWidth, styled } from './streams.ts';

export interface Column<Row> {
  readonly heading: string;
  /** What the column shows, for the help text. */
  readonly about: string;
  readonly cell: (row: Row) => string;
  /** If the output is too narrow, the columns with this field are truncated or left out: the one with 1 first. */
  readonly yields?: number;
  /** Which end of a truncated cell is kept. @default 'start' */
  readonly keeps?: 'start' | 'end';
  /** Whether the column is truncated only when all other columns with `yields` are left out. */
  readonly last?: boolean;
}

/** Minimum width in characters of a truncated column. */
const LEAST = 12;
const GAP = '  ';

/**
 * Returns the lines of a table with aligned columns and bold headings.
 * @param width the maximum width; default: that of the output
 */
export function table<Row>(
  columns: readonly Column<Row>[],
  rows: readonly Row[],
  width: number = outputWidth(),
): OutputLine[] {
  const headings = columns.map(({ heading }) => heading);
  const [first = [], ...others] = [headings, ...rows.map((row) => cellsOf(columns, row))];
  const natural = columns.map((_, at) =>
    [first, ...others].reduce((most, cells) => Math.max(most, length(cells[at])), 0),
  );
  const widths = widthsWithin(columns, natural, width);
  const line = (cells: readonly string[]): string => inWidths(columns, cells, widths);
  return [[styled('bold', line(first))], ...others.map(line)];
}

/** Lines of a table whose rows come one after another. Its columns are as wide as the widest cells so far, and fit the output. */
export class Lines<Row> {
  readonly #columns: readonly Column<Row>[];
  #widest: readonly number[];

  constructor(columns: readonly Column<Row>[]) {
    this.#columns = columns;
    this.#widest = columns.map(({ heading }) => length(heading));
  }

  /** Returns the headings. @param rows the first rows, which are not yet printed */
  head(rows: readonly Row[]): OutputLine {
    for (const row of rows) this.#widen(cellsOf(this.#columns, row));
    return [styled('bold', this.#fitted(this.#columns.map(({ heading }) => heading)))];
  }

  line(row: Row): string {
    const cells = cellsOf(this.#columns, row);
    this.#widen(cells);
    return this.#fitted(cells);
  }

  #widen(cells: readonly string[]): void {
    this.#widest = this.#widest.map((width, at) => Math.max(width, length(cells[at])));
  }

  #fitted(cells: readonly string[]): string {
    return inWidths(this.#columns, cells, widthsWithin(this.#columns, this.#widest, outputWidth()));
  }
}

/** Returns the columns of a table as lines of a help text. */
export function aboutColumns(columns: readonly Pick<Column<never>, 'heading' | 'about'>[], title = 'Columns'): string {
  const width = Math.max(...columns.map(({ heading }) => heading.length));
  const rows = columns.map(({ heading, about }) => `  ${heading.padEnd(width)}  ${about}`);
  return [`${title}:`, ...rows].join('\n');
}

const cellsOf = <Row>(columns: readonly Column<Row>[], row: Row): string[] =>
  columns.map(({ cell }) => printable(cell(row)));

/** Returns the width of each column so that all fit into `limit`; 0 for a column that is left out. */
function widthsWithin<Row>(columns: readonly Column<Row>[], natural: readonly number[], limit: number): number[] {
  const widths = [...natural];
  const order = columns
    .flatMap(({ heading, yields, last = false }, at) =>
      yields === undefined ? [] : { at, yields, last, least: Math.max(LEAST, heading.length) },
    )
    .sort((a, b) => a.yields - b.yields);
  const excess = (all: readonly number[]): number => {
    const kept = all.filter((width) => width > 0);
    return kept.reduce((sum, width) => sum + width, (kept.length - 1) * GAP.length) - limit;
  };
  const atLeast = [...natural];
  for (const { at, least, last } of order) if (!last) atLeast[at] = Math.min(natural[at] ?? 0, least);
  for (const { at, least, last } of order) {
    if (last && excess(atLeast) > 0) atLeast[at] = Math.min(natural[at] ?? 0, least);
    if (excess(atLeast) <= 0) break;
    atLeast[at] = 0;
    widths[at] = 0;
  }
  for (const { at } of order) widths[at] = Math.max(atLeast[at] ?? 0, (widths[at] ?? 0) - Math.max(0, excess(widths)));
  return widths;
}

function truncated<Row>(cell: string, column: Column<Row> | undefined, width: number): string {
  // Not by code units: half a surrogate pair is not printable.
  const characters = [...cell];
  if (characters.length <= width) return cell;
  if (column?.keeps === 'end') return `…${characters.slice(1 - width).join('')}`;
  return `${characters.slice(0, width - 1).join('')}…`;
}

const length = (text = ''): number => [...text].length;

const padded = (text: string, width: number): string => text + ' '.repeat(width - length(text));

/** Returns the cells of one row, each truncated or padded to the width of its column. A column of width 0 is left out. */
const inWidths = <Row>(columns: readonly Column<Row>[], cells: readonly string[], widths: readonly number[]): string =>
  cells
    .flatMap((cell, at) => (widths[at] ? padded(truncated(cell, columns[at], widths[at]), widths[at]) : []))
    .join(GAP)
    .trimEnd();
