import { closeSync, openSync } from 'node:fs';
import { isatty } from 'node:tty';

const STANDARD = [0, 1, 2];

/**
 * Puts /dev/null in the place of a terminal that is gone by the end of the process: Node sets the terminals it began
 * with back to what they were, and aborts where that fails.
 */
export function surviveHangUp(): void {
  const terminals = STANDARD.filter((fd) => isatty(fd));
  process.on('exit', () => {
    for (const fd of terminals) {
      if (isatty(fd)) continue;
      closeSync(fd);
      openSync('/dev/null', 'r+'); // takes the lowest number that is free
    }
  });
}
