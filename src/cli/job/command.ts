import { accessSync, constants, statSync } from 'node:fs';
import { delimiter, join } from 'node:path';
import { CliError, ExitCode } from '../exit-codes.ts';

/** The path that execvp(3) searches if PATH is not set. */
const DEFAULT_PATH = '/bin:/usr/bin';

/**
 * Searches for a command like execvp(3), so that `run` and `elect` fail before they enter the queue.
 * @throws {CliError} if the command is not found or cannot be executed
 */
export function checkCommand(command: string, path = process.env['PATH'] ?? DEFAULT_PATH): void {
  const hasSlash = command.includes('/');
  const candidates = hasSlash ? [command] : path.split(delimiter).map((directory) => join(directory, command));
  const obstacle = hasSlash && OBSTACLES[kindOf(command)];
  if (obstacle) throw new CliError(`cannot run ${command}: ${obstacle}`, ExitCode.cannotRun);
  const files = command === '' ? [] : candidates.filter((candidate) => kindOf(candidate) === 'file');
  if (files.length === 0) throw new CliError(`command not found: ${JSON.stringify(command)}`, ExitCode.notFound);
  if (!files.some(isExecutable)) throw new CliError(`cannot run ${files[0]}: not executable`, ExitCode.cannotRun);
}

type Kind = 'file' | 'other' | 'denied' | 'missing';

/** Why a path with a slash cannot be run. A search along PATH passes over such a path. */
const OBSTACLES: Readonly<Partial<Record<Kind, string>>> = { other: 'not a file', denied: 'permission denied' };

function kindOf(path: string): Kind {
  try {
    return statSync(path).isFile() ? 'file' : 'other';
  } catch (error) {
    return error instanceof Error && 'code' in error && error.code === 'EACCES' ? 'denied' : 'missing';
  }
}

function isExecutable(file: string): boolean {
  try {
    accessSync(file, constants.X_OK);
    return true;
  } catch {
    return false;
  }
}
