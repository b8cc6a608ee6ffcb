import { Command, type ParseOptionsResult } from 'commander';

/**
 * A subcommand that runs another command: `[options] <name> [options] [--] <command> [args...]`. Its own options end at `--`, or
 * else at the first word after the name that is neither an option nor its value. All words from there on belong to the command, as
 * with env(1).
 */
export class RunningCommand extends Command {
  constructor(subcommand: string) {
    super(subcommand);
    this.passThroughOptions();
  }

  /** Parses up to the name, and from there up to the command. */
  override parseOptions(argv: string[]): ParseOptionsResult {
    const { operands, unknown } = super.parseOptions(argv);
    const [name, ...rest] = operands;
    // Only the first word is unknown: the others may be the command's, such as its --help.
    if (name === undefined) return { operands, unknown: unknown.slice(0, 1) };
    if (argv.at(-operands.length - 1) === '--') return { operands, unknown };
    const after = super.parseOptions(rest);
    return { operands: [name, ...after.operands], unknown: after.unknown.slice(0, 1) };
  }
}
