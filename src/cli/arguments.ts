import { InvalidArgumentError } from 'commander';
import { show } from '../checks.ts';

/** Reads a flag's value as a number. What range it must be in is for those to say who use it. */
export function number(text: string): number {
  const value = text.trim() === '' ? Number.NaN : Number(text);
  // A value with a dash may be another flag with a password in it.
  if (Number.isNaN(value))
    throw new InvalidArgumentError(`It must be a number, got ${show(text.replace(/^(-.).+/s, '$1…'))}.`);
  return value;
}

/** Reads a flag's value as an exit code. */
export function exitCode(text: string): number {
  const value = number(text);
  if (!Number.isInteger(value) || value < 0 || value > 255)
    throw new InvalidArgumentError(`An exit code must be an integer from 0 to 255, got ${text}.`);
  return value;
}
