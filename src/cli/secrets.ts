/** Flags whose value is a password or may contain one. */
const CREDENTIALS = ['--user', '--username', '--password', '--token'];
/** How a misspelled credentials flag may begin. */
const STEM = /^--(?:pass(?:word)?|pw|pwd|user(?:name)?|token|secret|auth|cred)/i;

/** Printed in messages instead of an operand that may be part of a password. */
export const NOT_SHOWN = 'after the credentials (not shown: it may be part of an unquoted password)';

/** Returns the part of an argument before its value. */
const nameOf = (argument: string): string => argument.split(/[=:\s]/, 1)[0] ?? '';

/** Whether a value is in fact the next flag: the user forgot the value. */
export const isFlag = (value: string, known: ReadonlySet<string>): boolean =>
  known.has(nameOf(value)) || /^--[a-z-]+=/i.test(value);

/**
 * Returns a flag for a message, without its value. If a password may be attached, as in `--passwordXY` and `-pXY`, the rest is
 * replaced by `…`.
 * @param known all long flags
 * @param similar whether commander found a known flag with a similar spelling
 */
export function showFlag(argument: string, known: ReadonlySet<string>, similar = false): string {
  const name = nameOf(argument);
  if (known.has(name) || known.has(`-${name}`)) return name;
  if (!name.startsWith('--')) return name.length > 2 ? `${name.slice(0, 2)}…` : name;
  const attached = CREDENTIALS.findLast((flag) => name.startsWith(flag) && name[flag.length] !== '-');
  if (attached) return `${attached}…`;
  const isWord = name !== argument && /^--[a-z-]+$/i.test(name);
  const [stem = name] = STEM.exec(name) ?? [];
  return similar || isWord || stem === name ? name : `${stem}…`;
}

/**
 * Whether an operand may be part of a password, because it follows the value of a credentials flag. This happens if a password
 * with a space is not quoted, or if user and password are separated by a space.
 * @param argv the arguments, from the first position where such an operand can occur
 */
export function mayBePassword(operand: string, argv: readonly string[]): boolean {
  let follows = false;
  for (let at = 0; at < argv.length && argv[at] !== '--'; at += 1) {
    const argument = argv[at] ?? '';
    if (argument.startsWith('-')) {
      follows = CREDENTIALS.includes(nameOf(argument));
      if (follows && !argument.includes('=')) at += 1;
    } else if (follows && argument === operand) return true;
  }
  return false;
}
