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
  const line = (cells: readonly string[]) =>
    cells.flatMap((cell, at) => (widths[at] ? padded(truncated(cell, columns[at], widths[at]), widths[at]) : []));
  return [[styled('bold', joined(line(first)))], ...others.map((cells) => joined(line(cells)))];
}

/**
 * Returns a function that makes one line of each row, without aligning the columns. The lines fit the width of the
 * output: columns are truncated or left out by the widest cells so far.
 */
export function lines<Row>(columns: readonly Column<Row>[]): (row: Row) => string {
  let widest = columns.map(() => 0);
  return (row) => {
    const cells = cellsOf(columns, row);
    widest = widest.map((width, at) => Math.max(width, length(cells[at])));
    const widths = widthsWithin(columns, widest, outputWidth());
    return joined(cells.flatMap((cell, at) => (cell && widths[at] ? truncated(cell, columns[at], widths[at]) : [])));
  };
}

/** Returns the columns of a table as lines of a help text. */
export function aboutColumns(columns: readonly Pick<Column<never>, 'heading' | 'about'>[]): string {
  const width = Math.max(...columns.map(({ heading }) => heading.length));
  const rows = columns.map(({ heading, about }) => `  ${heading.padEnd(width)}  ${about}`);
  return ['Columns:', ...rows].join('\n');
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

const joined = (cells: readonly string[]): string => cells.join(GAP).trimEnd();
