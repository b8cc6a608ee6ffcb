import type { CommandWords, Grammar, OptionWords, Value } from './grammar.ts';
import { LINE_TO_COMPLETE } from './names.ts';

/** Returns the completion script for bash 3.2 and later, which needs no other script. */
export const bashScript = ({ options, commands }: Grammar): string => `# bash completion for etcd-v2-lock
_etcd_v2_lock() {
  local IFS=$'\\n' word=\${COMP_WORDS[COMP_CWORD]} command='' name='' value='' at words=''
  COMPREPLY=()
  for ((at = 1; at < COMP_CWORD; at++)); do
    # bash splits --option=value into three words, and host:port as well.
    [[ \${COMP_WORDS[at]} == '=' && $value ]] && continue
    if [[ \${COMP_WORDS[at]} == [:=] ]]; then
      at=$((at + 1))
      continue
    fi
    if [[ $value ]]; then
      value=''
      continue
    fi
    if [[ \${COMP_WORDS[at]} == -- && (${runners(commands)}) ]]; then
      _etcd_v2_lock_command $((at + 1))
      return
    fi
    case "$command \${COMP_WORDS[at]}" in
${[...valueCases('', options), ...commands.flatMap(({ name, options }) => valueCases(name, options))].join('\n')}
      ' '[!-]*) command=\${COMP_WORDS[at]} ;;
      *' '[!-]*)
        if [[ $name && (${runners(commands)}) ]]; then
          _etcd_v2_lock_command $at
          return
        fi
        name=\${COMP_WORDS[at]}
        ;;
    esac
  done
  if [[ $name && ! $value && $word != [-:=]* && (${runners(commands)}) ]]; then
    _etcd_v2_lock_command $COMP_CWORD
    return
  fi
  [[ $word == '=' ]] && word=''
  case $value in
    file)
      compopt -o filenames 2> /dev/null
      COMPREPLY=($(compgen -f -- "$word"))
      return
      ;;
    text) return ;;
  esac
  case "$command $word" in
${casesOf(
  '',
  options,
  commands.map(({ name }) => name),
)}
${commands.map(({ name, options, operands }) => casesOf(name, options, operands)).join('\n')}
  esac
  if [[ ! $name && $word != -* && (${anyOf(commands.filter(({ takesLock }) => takesLock))}) ]]; then
    words=$(${LINE_TO_COMPLETE}="\${COMP_LINE:0:COMP_POINT}" etcd-v2-lock 2> /dev/null)
  fi
  COMPREPLY=($(compgen -W "$words" -- "$word"))
}

# Completes the command that run or elect starts, whose name is the word number $1.
_etcd_v2_lock_command() {
  if declare -F _command_offset > /dev/null; then
    _command_offset "$1"
  elif ((COMP_CWORD == $1)); then
    COMPREPLY=($(compgen -c -- "$word"))
  else
    compopt -o filenames 2> /dev/null
    COMPREPLY=($(compgen -f -- "$word"))
  fi
}

complete -F _etcd_v2_lock etcd-v2-lock
`;

const runners = (commands: readonly CommandWords[]): string => anyOf(commands.filter(({ runs }) => runs));

const anyOf = (commands: readonly CommandWords[]): string =>
  commands.map(({ name }) => `$command == ${name}`).join(' || ');

/** Returns the cases that recognize options with a value. */
function valueCases(command: string, options: readonly OptionWords[]): string[] {
  const caseOf = (wanted: Value): string[] => {
    const flags = options.flatMap((option) => (option.value === wanted ? option.flags : []));
    return flags.length === 0
      ? []
      : [`      ${flags.map((flag) => `'${command} ${flag}'`).join(' | ')}) value=${wanted} ;;`];
  };
  return [...caseOf('file'), ...caseOf('text')];
}

/** Returns the cases for the words that may follow a command, or begin the command line. */
function casesOf(command: string, options: readonly OptionWords[], operands: readonly string[]): string {
  const list = (words: readonly string[]): string => `words=$'${words.join('\\n')}'`;
  const flags = options.flatMap((option) => option.flags);
  return `    '${command} -'*) ${list(flags)} ;;\n    '${command} '*) ${list(operands)} ;;`;
}
