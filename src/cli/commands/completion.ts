import { Argument, Command } from 'commander';
import { bashScript } from '../completion/bash.ts';
import { fishScript } from '../completion/fish.ts';
import { type Grammar, grammarOf } from '../completion/grammar.ts';
import { zshScript } from '../completion/zsh.ts';
import { explain } from '../help.ts';
import { print } from '../streams.ts';

const SCRIPTS: Readonly<Record<string, (grammar: Grammar) => string>> = {
  bash: bashScript,
  zsh: zshScript,
  fish: fishScript,
};

const ABOUT = `
The script also completes the names of locks in use. For that it runs etcd-v2-lock with the connection options typed so far, and
waits for etcd at most a second. Names with characters that a shell expands or splits are not completed.`;

/** `etcd-v2-lock completion`: prints the completion script for a shell. */
export function completionCommand(program: Command): Command {
  const command = new Command('completion')
    .description('Print the script that completes the command line in a shell.')
    .addArgument(new Argument('<shell>', 'the shell').choices(Object.keys(SCRIPTS)))
    .addHelpText('after', ABOUT)
    .action((shell: string) => {
      const script = SCRIPTS[shell]?.(grammarOf(program)) ?? '';
      for (const line of script.trimEnd().split('\n')) print(line);
    });
  return explain(command, {
    examples: [
      ['eval "$(etcd-v2-lock completion bash)"', 'in ~/.bashrc'],
      ['eval "$(etcd-v2-lock completion zsh)"', 'in ~/.zshrc, after compinit'],
      ['etcd-v2-lock completion fish | source', 'in ~/.config/fish/config.fish'],
    ],
  });
}
