import { existsSync, readFileSync } from 'node:fs';
import { dirname } from 'node:path';
import { show } from '../checks.ts';
import { UsageError } from './exit-codes.ts';

/** Flags that name a file with a secret in it. */
const SECRET = ['--key', '--password-file'];

/**
 * Returns the first line of a file, which is a password.
 * @throws {UsageError}
 */
export function readFirstLine(file: string, flag: string): string {
  const [line = ''] = read(file, flag).split(/\r?\n/, 1);
  if (line === '') throw new UsageError(`the first line of ${file} is empty: it should be the password`);
  return line;
}

/**
 * Returns the text of a PEM file.
 * @throws {UsageError}
 */
export function readPem(file: string, flag: string): string {
  const text = read(file, flag);
  if (!text.includes('-----BEGIN ')) throw new UsageError(`${file} is no PEM file: it has no "-----BEGIN …" line`);
  return text;
}

/** Returns the name of a file for a message, or its flag where the name may be the text of the file or a secret. */
export const nameOfFile = (file: string, flag: string): string => (isShown(file, flag) ? file : flag);

function read(file: string, flag: string): string {
  try {
    return readFileSync(file, 'utf8');
  } catch (error) {
    // Node's own words name the file in some cases only.
    const [reason] = (error instanceof Error ? error.message : String(error)).split(', ');
    const what = isShown(file, flag) ? show(file) : `the file of ${flag} (not shown: it may be the secret itself)`;
    throw new UsageError(`cannot read ${what}: ${reason}`);
  }
}

function isShown(file: string, flag: string): boolean {
  if (/-----BEGIN |\n/.test(file)) return false;
  return !SECRET.includes(flag) || existsSync(file) || (file.includes('/') && existsSync(dirname(file)));
}
