import { accessSync, constants, existsSync, statSync } from 'node:fs';
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
  const files = command === '' ? [] : candidates.filter(isFile);
  // A search along PATH skips directories.
  if (files.length === 0 && hasSlash && existsSync(command))
    throw new CliError(`cannot run ${command}: not a file`, ExitCode.cannotRun);
  if (files.length === 0) throw new CliError(`command not found: ${JSON.stringify(command)}`, ExitCode.notFound);
  if (!files.some(isExecutable)) throw new CliError(`cannot run ${files[0]}: not executable`, ExitCode.cannotRun);
}

const isFile = (file: string): boolean => statSync(file, { throwIfNoEntry: false })?.isFile() ?? false;

function isExecutable(file: string): boolean {
  try {
    accessSync(file, constants.X_OK);
    return true;
  } catch {
    return false;
  }
}
