import { styleText } from 'node:util';
import { ignore } from '../timing.ts';

type Style = Parameters<typeof styleText>[0];

/** One line on stdout. */
export function print(line: string): void {
  process.stdout.write(`${line}\n`);
}

/** One line on stderr, named as flock and others do. */
export function complain(line: string): void {
  process.stderr.write(`etcd-v2-lock: ${line}\n`);
}

/** What only someone who looks on wants to know. */
export function remark(line: string): void {
  if (process.stderr.isTTY) complain(line);
}

/** One value on stdout, for programs to read: the same for every command that has `--json`. */
export function printJson(value: unknown): void {
  print(JSON.stringify(value, (_, part) => (typeof part === 'bigint' ? String(part) : part)));
}

/** Colours are for people who look on. */
export function styled(style: Style, text: string, stream: NodeJS.WriteStream = process.stdout): string {
  return stream.isTTY && !process.env['NO_COLOR'] && process.env['TERM'] !== 'dumb'
    ? styleText(style, text, { validateStream: false })
    : text;
}

/** Text of others, such as a name or an identity: nothing in it may move the cursor. */
export function plain(text: string): string {
  return text.replace(/[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/gu, (character) => {
    const code = character.codePointAt(0) ?? 0;
    return `\\u{${code.toString(16)}}`;
  });
}

/** Rows under headings, in columns as wide as they need to be. */
export function table(headings: readonly string[], rows: readonly (readonly string[])[]): string[] {
  const widths = headings.map((heading, column) =>
    Math.max(heading.length, ...rows.map((row) => row[column]?.length ?? 0)),
  );
  const line = (row: readonly string[]) =>
    row
      .map((cell, column) => cell.padEnd(widths[column] ?? 0))
      .join('  ')
      .trimEnd();
  const [first, ...others] = [headings, ...rows].map(line);
  return [styled('bold', first ?? ''), ...others];
}

/** Whoever reads our output may have seen enough, as `head` does, or be gone with the terminal: not an error. */
export function endWithReader(): void {
  process.stdout.on('error', (error: NodeJS.ErrnoException) => {
    if (error.code !== 'EPIPE' && error.code !== 'EIO') throw error;
    process.exit(0);
  });
  process.stderr.on('error', ignore);
}
