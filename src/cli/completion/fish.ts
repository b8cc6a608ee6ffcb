import type { CommandWords, Grammar, OptionWords } from './grammar.ts';

/** Returns the completion script for fish. */
export const fishScript = ({ options, commands }: Grammar): string => `# fish completion for etcd-v2-lock
function __etcd_v2_lock_command
    set -l skip
    for word in (commandline -opc)[2..]
        if set -q skip[1]
            set -e skip[1]
            continue
        end
        switch $word
            case ${options.flatMap(({ flags, value }) => (value === 'none' ? [] : flags)).join(' ')}
                set skip yes
            case '-*'
            case '*'
                echo $word
                return
        end
    end
    return 1
end

function __etcd_v2_lock_without_command
    not __etcd_v2_lock_command > /dev/null
end

function __etcd_v2_lock_in
    set -l command (__etcd_v2_lock_command); and test $command = $argv[1]
end

# Completes the command after "--".
function __etcd_v2_lock_job
    set -l words (commandline -opc)
    set -l token (commandline -ct)
    set -e words[1..(contains -i -- -- $words)]
    complete -C (string join ' ' -- (string escape -- $words) "$token")
end

complete -c etcd-v2-lock -f
${linesOf('__etcd_v2_lock_without_command', options)}
${commands.map(({ name, description }) => `complete -c etcd-v2-lock -n __etcd_v2_lock_without_command -a ${name} -d ${quoted(description)}`).join('\n')}
${commands.map(commandLines).join('\n')}
`;

const quoted = (text: string): string => `'${text.replace(/[\\']/g, '\\$&')}'`;

function commandLines({ name, options, operands, runs }: CommandWords): string {
  const seen = `__etcd_v2_lock_in ${name}`;
  const lines = [linesOf(quoted(seen), options)];
  if (operands.length > 0) lines.push(`complete -c etcd-v2-lock -n ${quoted(seen)} -a ${quoted(operands.join(' '))}`);
  if (runs)
    lines.push(
      `complete -c etcd-v2-lock -n ${quoted(`${seen}; and contains -- -- (commandline -opc)`)} -a '(__etcd_v2_lock_job)'`,
    );
  return lines.filter((line) => line !== '').join('\n');
}

function linesOf(condition: string, options: readonly OptionWords[]): string {
  return options
    .map(({ flags, description, value }) => {
      const words = flags.map((flag) => (flag.startsWith('--') ? `-l ${flag.slice(2)}` : `-s ${flag.slice(1)}`));
      const takes = { none: '', file: ' -r -F', text: ' -x' }[value];
      return `complete -c etcd-v2-lock -n ${condition} ${words.join(' ')}${takes} -d ${quoted(description)}`;
    })
    .join('\n');
}
