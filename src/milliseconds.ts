const HOUR = 3600;
const DAY = 24 * HOUR;

/** Options for which the warning has been emitted. */
const warned = new Set<string>();

/**
 * Emits a warning if a number of seconds looks like milliseconds: more than an hour and a multiple of 1000, but not whole hours
 * up to a day. Warns once per option. Node's flag `--disable-warning=ETCD_LOCK_MILLISECONDS` turns the warning off.
 */
export function warnOfMilliseconds(option: string, seconds: number): void {
  if (seconds <= HOUR || !looksLikeMilliseconds(seconds) || warned.has(option)) return;
  warned.add(option);
  const hours = (seconds / HOUR).toFixed(1);
  process.emitWarning(`${option} is in seconds: ${seconds} is ${hours} hours; did you mean ${seconds / 1000}?`, {
    code: 'ETCD_LOCK_MILLISECONDS',
    detail: `If ${seconds} seconds are right, run Node with --disable-warning=ETCD_LOCK_MILLISECONDS.`,
  });
}

const looksLikeMilliseconds = (seconds: number): boolean =>
  seconds % 1000 === 0 && !(seconds % HOUR === 0 && seconds <= DAY);
