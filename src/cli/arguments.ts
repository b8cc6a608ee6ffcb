import { InvalidArgumentError } from 'commander';
import { show } from '../base/checks.ts';

/** Parses the value of a flag as a number. The caller checks the range. */
export function number(text: string): number {
  const value = text.trim() === '' ? Number.NaN : Number(text);
  // A value that begins with a dash may be another flag that contains a password.
  if (Number.isNaN(value))
    throw new InvalidArgumentError(`It must be a number, got ${show(text.replace(/^(-.).+/s, '$1…'))}.`);
  return value;
}

/** Parses the value of a flag as permissions of a file: octal digits. */
export function octal(text: string): number {
  if (!/^[0-7]{1,4}$/.test(text)) throw new InvalidArgumentError('It must be three octal digits, such as 660.');
  return Number.parseInt(text, 8);
}

/** Parses the value of a flag as an exit code, 0 to 255. */
export function exitCode(text: string): number {
  const value = number(text);
  if (!Number.isInteger(value) || value < 0 || value > 255)
    throw new InvalidArgumentError(`An exit code must be an integer from 0 to 255, got ${text}.`);
  return value;
}

/** Parses the value of a flag as a position in a queue. */
export function position(text: string): number {
  const value = number(text);
  if (!Number.isSafeInteger(value) || value < 1)
    throw new InvalidArgumentError(`A position must be an integer from 1, got ${text}.`);
  return value;
}
