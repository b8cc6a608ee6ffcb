import { markdownTable } from 'markdown-table';

/** Three significant digits, without an exponent. */
export function number(value) {
  if (value === undefined) return '–';
  if (value >= 100) return String(Math.round(value));
  return String(Number(value.toPrecision(3)));
}

export const span = ({ low, high }) => `${number(low)} – ${number(high)}`;

/** @param columns pairs of a heading and a function from a row to its cell; columns of numbers are aligned right */
export function table(columns, rows) {
  const body = rows.map((row) => columns.map(([, cell]) => String(cell(row))));
  const align = columns.map((_, column) =>
    column > 0 && body.every((cells) => /^[\d–]/.test(cells[column])) ? 'r' : 'l',
  );
  return markdownTable([columns.map(([heading]) => heading), ...body], { align });
}
