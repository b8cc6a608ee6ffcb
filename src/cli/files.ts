import { closeSync, existsSync, openSync, readSync } from 'node:fs';
import { dirname } from 'node:path';
import { show } from '../base/checks.ts';
import { errorText } from '../base/error-text.ts';
import { UsageError } from './exit-codes.ts';

/** Flags whose file contains a secret. */
const SECRET = [
  '--key',
  '--key-passphrase-file',
  '--listen-key',
  '--listen-key-passphrase-file',
  '--password-file',
  '--token-file',
];

/**
 * Returns the first line of a file with a secret.
 * @param what the secret, for the message
 * @throws {UsageError} if the file cannot be read or its first line is empty
 */
export function readFirstLine(file: string, flag: string, what: 'password' | 'passphrase' | 'token'): string {
  const [line = ''] = read(file, flag).split(/\r?\n/, 1);
  if (line === '') throw new UsageError(`no ${what} in ${file}: its first line is empty`);
  return line;
}

/**
 * Returns the path of a PEM file.
 * @throws {UsageError} if the file cannot be read or is not PEM
 */
export function pemFile(file: string, flag: string): string {
  const text = read(file, flag);
  if (!text.includes('-----BEGIN ')) throw new UsageError(`${file} is not a PEM file: it has no "-----BEGIN …" line`);
  return file;
}

/** Returns the name of a file for a message, or its flag if the name may be a secret or the content of the file. */
export const nameOfFile = (file: string, flag: string): string => (isShown(file, flag) ? file : flag);

/** Maximum bytes of a file: more than a bundle of all public CA certificates. A device may have no end. */
const MOST_BYTES = 1024 * 1024;

function read(file: string, flag: string): string {
  try {
    return textOf(file);
  } catch (error) {
    // Node's message ends with the system call and sometimes the file name: both are dropped.
    const [reason] = errorText(error).split(', ');
    const what = isShown(file, flag)
      ? show(file)
      : `the file given by ${flag} (name not shown: it may be the secret itself)`;
    throw new UsageError(`cannot read ${what}: ${reason}`);
  }
}

/** @throws {Error} if the file cannot be read or is too long */
function textOf(file: string): string {
  const buffer = Buffer.alloc(MOST_BYTES + 1);
  const descriptor = openSync(file, 'r');
  let length = 0;
  try {
    for (let read = -1; read !== 0 && length < buffer.length; length += read)
      read = readSync(descriptor, buffer, length, buffer.length - length, null);
  } finally {
    closeSync(descriptor);
  }
  if (length > MOST_BYTES) throw new Error('it has more than 1 MiB');
  return buffer.toString('utf8', 0, length);
}

function isShown(file: string, flag: string): boolean {
  if (/-----BEGIN |\n/.test(file)) return false;
  return !SECRET.includes(flag) || existsSync(file) || isInDirectory(file);
}

/** Whether the name begins with a directory that exists. A "/" at the start or at the end may be part of a secret. */
function isInDirectory(file: string): boolean {
  if (file.startsWith('./')) return true;
  const directory = dirname(file);
  return !['.', '/'].includes(directory) && existsSync(directory);
}
