import { closeSync, constants, openSync } from 'node:fs';

/** Whether this process has a controlling terminal, wherever its stdin, stdout and stderr lead. */
export function hasTerminal(): boolean {
  try {
    closeSync(openSync('/dev/tty', constants.O_RDWR | constants.O_NOCTTY));
    return true;
  } catch {
    return false;
  }
}
