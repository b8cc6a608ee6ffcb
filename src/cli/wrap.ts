/** Fits help texts to a narrow terminal. Their lines are as long as in the source, up to 120 characters. */

interface Item {
  readonly text: string;
  /** Indentation of the lines after the first. */
  readonly hanging: number;
}

/** A row of two columns: the second one begins after at least two spaces. */
const ROW = /^ +\S+(?: \S+)* {2,}(?=\S)/;
const LISTED = /^(\s*- )/;

/** Returns a text whose lines are at most `width` characters long, if its words are. Paragraphs that fit stay as they are. */
export function wrapped(text: string, width: number): string {
  if (width === Number.POSITIVE_INFINITY) return text;
  return text
    .split(/(\n{2,})/)
    .map((block) => (block.split('\n').some((line) => line.length > width) ? wrappedBlock(block, width) : block))
    .join('');
}

const wrappedBlock = (block: string, width: number): string =>
  itemsOf(block.split('\n'))
    .map((item) => wrappedItem(item, width))
    .join('\n');

/** Joins the lines of each paragraph and list item. Indented lines are rows of a table, and stay lines. */
function itemsOf(lines: readonly string[]): Item[] {
  const items: Item[] = [];
  for (const line of lines) {
    const last = items.at(-1);
    const indent = line.length - line.trimStart().length;
    const [mark] = LISTED.exec(line) ?? [];
    const [term] = ROW.exec(line) ?? [];
    if (line === '') items.push({ text: '', hanging: 0 });
    else if (mark !== undefined) items.push({ text: line, hanging: mark.length });
    else if (last && LISTED.test(last.text) && indent === last.hanging)
      items[items.length - 1] = { ...last, text: `${last.text} ${line.trim()}` };
    else if (term !== undefined) items.push({ text: line, hanging: term.length });
    else if (indent > 0 || !last || last.text === '' || last.hanging > 0 || /:$/.test(last.text))
      items.push({ text: line, hanging: indent });
    else items[items.length - 1] = { ...last, text: `${last.text} ${line}` };
  }
  return items;
}

function wrappedItem({ text, hanging }: Item, width: number): string {
  const lines: string[] = [];
  let rest = text;
  let least = hanging;
  while (rest.length > width) {
    // Not at the spaces before the text of the line.
    const at = rest.lastIndexOf(' ', width);
    const end = at > least ? at : rest.indexOf(' ', Math.max(width, least));
    if (end < 0) break;
    lines.push(rest.slice(0, end).trimEnd());
    rest = ' '.repeat(hanging) + rest.slice(end).trimStart();
    least = hanging;
  }
  return [...lines, rest].join('\n');
}
