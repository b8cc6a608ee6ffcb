import type { CommandWords, Grammar, OptionWords } from './grammar.ts';
import { LINE_TO_COMPLETE } from './names.ts';

/** Returns the completion script for zsh, to be sourced or to be put into a directory of `fpath` as `_etcd-v2-lock`. */
export const zshScript = ({ options, commands }: Grammar): string => `#compdef etcd-v2-lock
_etcd-v2-lock() {
  local curcontext="$curcontext" state line typed="\${(j: :)words[1,CURRENT]}"
  typeset -A opt_args
  _arguments -C -A '-*' \\
${argumentsOf(options)}
    '1: :->command' \\
    '*:: :->operands'
  case $state in
    command)
      local -a commands=(
${commands.map(({ name, description }) => `        ${quoted(`${name}:${description}`)}`).join('\n')}
      )
      _describe command commands
      ;;
    operands)
      case $line[1] in
${commands.map(caseOf).join('\n')}
      esac
      ;;
  esac
}

_etcd-v2-lock_names() {
  local -a names=(\${(f)"$(${LINE_TO_COMPLETE}="$typed" etcd-v2-lock 2> /dev/null)"})
  compadd -a names
}

if [[ $funcstack[1] == _etcd-v2-lock ]]; then
  _etcd-v2-lock "$@"
else
  compdef _etcd-v2-lock etcd-v2-lock
fi
`;

const quoted = (text: string): string => `'${text.replaceAll("'", "'\\''")}'`;

function argumentsOf(options: readonly OptionWords[]): string {
  return options
    .flatMap(({ flags, description, value }) => {
      const text = description.replace(/[\\[\]:]/g, '\\$&');
      const action = { none: '', file: ':file:_files', text: ':value: ' }[value];
      return flags.map((flag) => {
        // A long flag may also be followed by "=" and the value.
        const name = value !== 'none' && flag.startsWith('--') ? `${flag}=` : flag;
        return `    ${quoted(`(${flags.join(' ')})${name}[${text}]${action}`)} \\`;
      });
    })
    .join('\n');
}

function caseOf({ name, options, operands, takesLock, runs }: CommandWords): string {
  const rest = runs
    ? `'1:name:_etcd-v2-lock_names' '(-)2:command:_command_names -e' '*::arguments:_normal'`
    : takesLock
      ? `'1:name:_etcd-v2-lock_names'`
      : `'1:operand:(${operands.join(' ')})'`;
  return `        ${name})\n          _arguments -S \\\n${argumentsOf(options)}\n            ${rest}\n          ;;`;
}
