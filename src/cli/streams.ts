import { createInterface } from 'node:readline';
import { styleText } from 'node:util';
import { ignore } from '../base/cancellation.ts';
import { printable } from '../base/printable.ts';
import { ExitCode } from './exit-codes.ts';

type Style = Parameters<typeof styleText>[0];

/** Text with a style that is applied on terminals only. */
export interface Styled {
  readonly style: Style;
  readonly text: string;
}

/** A line, as one text or several pieces. Only styles send control characters to the terminal: those in the text are escaped. */
export type OutputLine = string | readonly (string | Styled)[];

export const styled = (style: Style, text: string): Styled => ({ style, text });

/** Prints one line on stdout. Unprintable characters in it are escaped. */
export function print(line: OutputLine): void {
  process.stdout.write(`${rendered(line)}\n`);
}

/** Prints like {@link print}. Resolves once the line is written. If that fails, rejects instead of letting the process exit. */
export async function printOrReject(line: OutputLine): Promise<void> {
  const { stdout } = process;
  stdout.on('error', ignore).off('error', exitOnError);
  await new Promise<void>((resolve, reject) => {
    stdout.write(`${rendered(line)}\n`, (error) => (error ? reject(error) : resolve()));
  });
}

/** Prints a text of this program on stdout, as it is. */
export function printText(text: string): void {
  process.stdout.write(text);
}

/**
 * Replaces the last lines on stdout, which must be a terminal, by other lines. Unprintable characters in them are escaped.
 * @param count how many lines to replace
 */
export function replaceLines(count: number, lines: readonly OutputLine[]): void {
  const up = count === 0 ? '' : `\r\u001b[${count}A`;
  const text = lines.map((line) => `${rendered(line)}${CLEAR_REST}\n`).join('');
  process.stdout.write(`${up}${text}${CLEAR_BELOW}`);
}

/** Switches stdout, which must be a terminal, to its second screen, without a cursor. Longer lines are cut. */
export function enterScreen(): void {
  process.stdout.write('\u001b[?1049h\u001b[?25l\u001b[?7l');
}

/** Switches back to what the terminal has shown before {@link enterScreen}. */
export function leaveScreen(): void {
  process.stdout.write('\u001b[?7h\u001b[?25h\u001b[?1049l');
}

/** Replaces all lines of the screen. Unprintable characters in them are escaped. */
export function drawScreen(lines: readonly OutputLine[]): void {
  // Clears each line first: after its last column, the cursor is still on that column.
  const text = lines.map((line) => `${CLEAR_REST}${rendered(line)}`).join('\r\n');
  process.stdout.write(`\u001b[H${text}`);
}

/** Prints one line on stderr, prefixed with the program name. Unprintable characters in it are escaped. */
export function complain(line: string): void {
  process.stderr.write(`etcd-v2-lock: ${printable(line)}\n`);
}

/** Prints one line on stderr, but only if stderr is a terminal: a note for people, not for programs. */
export function remark(line: string): void {
  if (process.stderr.isTTY) complain(line);
}

/** Asks a question on the terminal. Resolves to false unless the answer is yes, and off a terminal, where nobody has seen it. */
export async function isConfirmed(question: string): Promise<boolean> {
  if (!process.stdin.isTTY || !process.stderr.isTTY) return false;
  process.stderr.write(printable(question));
  try {
    for await (const line of createInterface({ input: process.stdin })) return /^\s*y(es)?\s*$/i.test(line);
    return false;
  } finally {
    // A terminal that was read keeps the process alive.
    process.stdin.unref();
  }
}

/** Clears the line from the cursor on. */
const CLEAR_REST = '\u001b[K';
/** Clears the screen from the cursor on. */
const CLEAR_BELOW = '\u001b[J';
/** Moves the cursor to the start of the line and clears the line. */
const CLEAR = `\r${CLEAR_REST}`;

/** Replaces the status line on stderr, which must be a terminal. The line is truncated to the terminal width. */
export function showStatus(line: string): void {
  process.stderr.write(CLEAR + printable(line).slice(0, (process.stderr.columns || 80) - 1));
}

/** Removes the status line. */
export function clearStatus(): void {
  process.stderr.write(CLEAR);
}

/**
 * Prints one value on stdout as one line of JSON. Bigints become strings, and unprintable characters in strings become
 * `\uXXXX`.
 */
export function printJson(value: unknown): void {
  print(jsonOf(value));
}

/** Returns a value as JSON, in which bigints are strings. */
export const jsonOf = (value: unknown): string =>
  JSON.stringify(value, (_, part) => (typeof part === 'bigint' ? String(part) : part));

/** Prints an object on stderr as one line of JSON that begins with the time. Unprintable characters in strings become `\uXXXX`. */
export function logJson(record: object): void {
  process.stderr.write(`${printable(JSON.stringify({ time: new Date().toISOString(), ...record }))}\n`);
}

/** Returns the number of characters per line of stdout: COLUMNS, else the width of the terminal, else no limit. */
export function outputWidth(): number {
  const columns = process.env['COLUMNS'] ?? '';
  if (/^[1-9]\d*$/.test(columns)) return Number(columns);
  return (process.stdout.isTTY && process.stdout.columns) || Number.POSITIVE_INFINITY;
}

function rendered(line: OutputLine): string {
  const pieces = typeof line === 'string' ? [line] : line;
  return pieces.map((piece) => renderedPiece(piece, process.stdout)).join('');
}

function renderedPiece(piece: string | Styled, stream: NodeJS.WriteStream): string {
  if (typeof piece === 'string') return printable(piece);
  const text = printable(piece.text);
  const isColoured = stream.isTTY && !process.env['NO_COLOR'] && process.env['TERM'] !== 'dumb';
  return isColoured ? styleText(piece.style, text, { validateStream: false }) : text;
}

/**
 * Makes the process exit with 0 when the reader of stdout is gone, as with `| head` or a closed terminal. If stdout cannot be written
 * for another reason, such as a full disk, the process exits with 125.
 */
export function exitOnFailedOutput(): void {
  process.stdout.on('error', exitOnError);
  process.stderr.on('error', ignore);
}

function exitOnError(error: NodeJS.ErrnoException): void {
  if (error.code === 'EPIPE' || error.code === 'EIO') process.exit(ExitCode.ok);
  // Node's message ends with the system call.
  complain(`cannot write to stdout: ${error.message.split(', ', 1)[0]}`);
  process.exit(ExitCode.failed);
}

/** Makes the process exit with 125 after an error that nothing handles. Node's own code for that, 1, means that a lock is taken. */
export function exitOnBug(): void {
  process.on('uncaughtException', (error: unknown) => {
    const text = (error instanceof Error && error.stack) || String(error);
    for (const line of text.split('\n')) complain(line);
    process.exit(ExitCode.failed);
  });
}
