/** Flags whose value is a password, or may end in one. */
const CREDENTIALS = ['--user', '--username', '--password'];
/** Beginnings of a misspelt flag for credentials. */
const STEM = /^--(?:pass(?:word)?|pw|pwd|user(?:name)?|secret|auth|cred)/i;

/** For a message, instead of an operand that may be a password. */
export const NOT_SHOWN = 'after the credentials (not shown: it may be part of a password with a blank in it)';

/** The part of an argument before a value. */
const nameOf = (argument: string): string => argument.split(/[=:\s]/, 1)[0] ?? '';

/** Whether an argument that was taken for a value is a flag: the value before it was forgotten. */
export const isFlag = (value: string, known: ReadonlySet<string>): boolean =>
  known.has(nameOf(value)) || /^--[a-z-]+=/i.test(value);

/**
 * Returns a flag for a message, without its value. A password may be stuck to it, as in `--passwordXY` and `-pXY`: then what
 * follows the flag is `…`.
 * @param known all long flags
 * @param similar whether a known flag is spelled much like it
 */
export function showFlag(argument: string, known: ReadonlySet<string>, similar = false): string {
  const name = nameOf(argument);
  if (known.has(name) || known.has(`-${name}`)) return name;
  if (!name.startsWith('--')) return name.length > 2 ? `${name.slice(0, 2)}…` : name;
  const stuck = CREDENTIALS.findLast((flag) => name.startsWith(flag) && name[flag.length] !== '-');
  if (stuck) return `${stuck}…`;
  const isWord = name !== argument && /^--[a-z-]+$/i.test(name);
  const [stem = name] = STEM.exec(name) ?? [];
  return similar || isWord || stem === name ? name : `${stem}…`;
}

/**
 * Whether an operand may be part of a password: it follows the value of a flag for credentials, as where a password with a space
 * in it, or a name and a password, were not quoted.
 * @param argv the arguments from where operands of this kind may stand
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
