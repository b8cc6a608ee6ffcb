import { Option } from 'commander';
import { exitCode, number } from '../arguments.ts';

/** The `--ttl` option of the commands that run another command under a lock. */
export const TTL_FLAG = [
  '--ttl <seconds>',
  'lease in seconds: how long a crashed holder blocks others',
  number,
  30,
] as const;

export const IDENTITY_FLAG = [
  '--identity <id>',
  'identity in the queue. Entries left by a crashed process with this identity are removed first. Never use it in two processes at the same time',
] as const;

export const LABEL_FLAG = [
  '--label <text>',
  'label that shows people who holds or waits; it never affects the order. Empty: none (default: host name and process ID)',
] as const;

export const SHARED_FLAG = ['--shared', 'hold the lock together with others that use --shared'] as const;

export const limitOption = (): Option =>
  new Option(
    '-n, --limit <count>',
    'maximum number of holders, from 1 to 1000. All clients that use --limit must give the same number. A client with neither --limit nor --shared holds the lock alone',
  )
    .argParser(number)
    .conflicts('shared');

export const ifAvailableOption = (): Option =>
  new Option('--if-available', 'do not wait: exit if the lock is taken').conflicts('timeout');

/** @param when in which cases, for the help */
export const conflictExitCodeOption = (when: string): Option =>
  new Option('-E, --conflict-exit-code <number>', `exit code if ${when}`).argParser(exitCode);

export const VERBOSE_FLAG = ['-v, --verbose', 'print each step on stderr'] as const;

export const quietOption = (): Option =>
  new Option('-q, --quiet', 'print only errors and warnings, not who holds the lock').conflicts('verbose');
