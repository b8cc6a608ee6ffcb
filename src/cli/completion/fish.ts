import type { CommandWords, Grammar, OptionWords } from './grammar.ts';
import { LINE_TO_COMPLETE } from './names.ts';

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
            case ${valueFlags(options)}
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

# Prints the position of the command that run or elect starts; fails if the cursor is before it.
function __etcd_v2_lock_job_at
    set -l words (commandline -opc)
    set -l operands
    set -l skip
    for at in (seq 2 (count $words))
        if set -q skip[1]
            set -e skip[1]
            continue
        end
        switch $words[$at]
            case --
                math $at + 1
                return
            case ${valueFlags([...options, ...commands.filter(({ runs }) => runs).flatMap((command) => command.options)])}
                set skip yes
            case '-*'
            case '*'
                set operands $operands $at
                if set -q operands[3]
                    echo $at
                    return
                end
        end
    end
    set -q skip[1]; and return 1
    set -q operands[2]; and not string match -q -- '-*' (commandline -ct); and math (count $words) + 1
end

function __etcd_v2_lock_before_job
    __etcd_v2_lock_in $argv[1]; and not __etcd_v2_lock_job_at > /dev/null
end

function __etcd_v2_lock_job
    set -l words (commandline -opc)
    set -l token (commandline -ct)
    set -l at (__etcd_v2_lock_job_at); or return
    set -e words[1..(math $at - 1)]
    complete -C (string join ' ' -- (string escape -- $words) "$token")
end

function __etcd_v2_lock_names
    set -lx ${LINE_TO_COMPLETE} (commandline -cp)
    etcd-v2-lock 2> /dev/null
end

complete -c etcd-v2-lock -f
${linesOf('__etcd_v2_lock_without_command', options)}
${commands.map(({ name, description }) => `complete -c etcd-v2-lock -n __etcd_v2_lock_without_command -a ${name} -d ${quoted(description)}`).join('\n')}
${commands.map(commandLines).join('\n')}
`;

/** Returns the flags that are followed by a value. */
const valueFlags = (options: readonly OptionWords[]): string =>
  [...new Set(options.flatMap(({ flags, value }) => (value === 'none' ? [] : flags)))].join(' ');

const quoted = (text: string): string => `'${text.replace(/[\\']/g, '\\$&')}'`;

function commandLines({ name, options, operands, takesLock, runs }: CommandWords): string {
  const seen = `__etcd_v2_lock_${runs ? 'before_job' : 'in'} ${name}`;
  const lines = [linesOf(quoted(seen), options)];
  if (operands.length > 0) lines.push(`complete -c etcd-v2-lock -n ${quoted(seen)} -a ${quoted(operands.join(' '))}`);
  if (takesLock) lines.push(`complete -c etcd-v2-lock -n ${quoted(seen)} -a '(__etcd_v2_lock_names)'`);
  if (runs) lines.push(`complete -c etcd-v2-lock -n ${quoted(`__etcd_v2_lock_in ${name}`)} -a '(__etcd_v2_lock_job)'`);
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
