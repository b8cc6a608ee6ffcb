import { accessSync, constants, existsSync, statSync } from 'node:fs';
import { delimiter, join } from 'node:path';
import { CliError, ExitCode } from '../exit-codes.ts';

/** Where execvp(3) looks when there is no PATH. */
const DEFAULT_PATH = '/bin:/usr/bin';

/**
 * Looks for a command as execvp(3) will, so that nobody queues up for one that is not there.
 * @throws {CliError}
 */
export function checkCommand(command: string, path = process.env['PATH'] ?? DEFAULT_PATH): void {
  const places = command.includes('/') ? [command] : path.split(delimiter).map((directory) => join(directory, command));
  const files = command === '' ? [] : places.filter(isFile);
  // Along PATH a directory is passed over.
  if (files.length === 0 && command.includes('/') && existsSync(command))
    throw new CliError(`${command} cannot be run: it is no file`, ExitCode.cannotRun);
  if (files.length === 0) throw new CliError(`${JSON.stringify(command)} was not found`, ExitCode.notFound);
  if (!files.some(isExecutable))
    throw new CliError(`${files[0]} cannot be run: it is not executable`, ExitCode.cannotRun);
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
