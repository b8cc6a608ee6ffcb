import { closeSync, constants, openSync } from 'node:fs';
import { isatty } from 'node:tty';

const STANDARD = [0, 1, 2];

/** Whether this process has a controlling terminal, even if stdin, stdout and stderr are redirected. */
export function hasTerminal(): boolean {
  try {
    closeSync(openSync('/dev/tty', constants.O_RDWR | constants.O_NOCTTY));
    return true;
  } catch {
    return false;
  }
}

/**
 * Lets this process exit normally after its terminal is gone. On exit, Node restores the settings of the terminals it was
 * started with, and aborts if that fails. So a terminal that is gone is replaced by /dev/null before that.
 */
export function surviveHangUp(): void {
  const terminals = STANDARD.filter((fd) => isatty(fd));
  process.on('exit', () => {
    for (const fd of terminals) {
      if (isatty(fd)) continue;
      closeSync(fd);
      openSync('/dev/null', 'r+'); // gets the lowest free number, which is `fd`
    }
  });
}
