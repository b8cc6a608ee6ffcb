// The manual as data, from the help texts of the built CLI: chapters by title, each a list of blocks.
//   { prose }    text with `code`; lines that begin with "- " are list items
//   { items }    terms, each with a text
//   { code }     text to be shown as it is
//   { rows }     pairs of a code and its meaning
//   { heading }  begins a section
import { CONNECTION_OPTIONS, connectionSettings } from '../../dist/cli/connection.js';
import { codeOf, exitReasons } from '../../dist/cli/exit-codes.js';
import { CONNECTING, showDetails } from '../../dist/cli/help.js';
import { program } from '../../dist/cli/program.js';

const all = program();
const commands = all.commands.filter((command) => command.name() !== 'help').map(showDetails);
const options = all.createHelp().visibleOptions(all);
const isForEvery = ({ helpGroupHeading }) => helpGroupHeading === CONNECTION_OPTIONS;

export const chapters = {
  NAME: [{ prose: `etcd-v2-lock - ${all.description()}` }],
  SYNOPSIS: [{ code: [...commands, all].map(usageOf).join('\n') }],
  DESCRIPTION: [
    {
      prose: `Each command reports its result by its exit code. Data is printed on stdout, as JSON with \`--json\`. Errors and warnings are
printed on stderr. Colours are used on terminals only. Control, bidi and other invisible characters in names, values and messages are printed as
\`\\uXXXX\`, which a JSON parser reads as the same character.`,
    },
    {
      prose: `Tables and events fit the width of the terminal: the least important columns are truncated with "…" or left out. \`--json\` and output that is not on a
terminal are complete. \`COLUMNS\` sets another width, also for output that is not on a terminal.`,
    },
    { prose: 'Errors about credentials and unknown options do not show the value.' },
    { items: options.filter((option) => !isForEvery(option)).map(itemOfOption) },
  ],
  COMMANDS: commands.flatMap(sectionOf),
  'CONNECTION AND AUTHENTICATION OPTIONS': [
    {
      prose: `All commands except \`serve\` and \`completion\` have these options. They can be given before or after the command name.
Options take precedence over environment variables. Empty variables count as unset.`,
    },
    { items: options.filter(isForEvery).map(itemOfOption) },
  ],
  ENVIRONMENT: [
    {
      items: [
        ...connectionSettings.flatMap(itemOfVariables),
        { terms: ['COLUMNS'], text: 'width of tables and events, in characters' },
        { terms: ['NO_COLOR'], text: 'disable colours on terminals' },
        { terms: ['DEBUG'], text: '`etcd-v2-lock:*` logs each request on stderr, without passwords' },
      ],
    },
  ],
  'EXIT STATUS': [
    { prose: 'The exit codes follow flock(1), timeout(1) and sysexits.h.' },
    { rows: Object.entries(exitReasons).map(([reason, meaning]) => [codeOf(reason), meaning]) },
  ],
  EXAMPLES: [{ code: commands.flatMap((command) => sectionsAfter(command).get('Examples') ?? []).join('\n') }],
  'SEE ALSO': [{ prose: 'flock(1), timeout(1), etcdctl(1)' }],
};

/** Returns the section of one command: usage, description, arguments, options, and the rest of its help. */
function sectionOf(command) {
  const help = command.createHelp();
  const taken = [
    ...help
      .visibleArguments(command)
      .map((argument) => ({ terms: [argument.name()], text: help.argumentDescription(argument) })),
    ...help
      .visibleOptions(command)
      .filter(({ long }) => long !== '--help')
      .map(itemOfOption),
  ];
  const sections = [...sectionsAfter(command)].filter(([title]) => title !== 'Examples');
  return [
    { heading: command.name() },
    { code: usageOf(command) },
    { prose: command.description() },
    { items: taken },
    ...sections.flatMap(([title, text]) =>
      title === '' ? [{ prose: text }] : [{ prose: `${title}:` }, { code: text }],
    ),
  ];
}

/** Returns the help of a command after its option list, by heading. Plain text is under the empty heading. */
function sectionsAfter(command) {
  let text = '';
  const writeOut = (part) => {
    text += part;
  };
  command.configureOutput({ writeOut, getOutHelpWidth: () => 80, getOutHasColors: () => false });
  command.outputHelp();
  const after = text.slice(command.helpInformation().length).replace(CONNECTING, '');
  const sections = new Map();
  let title = '';
  const rows = after.split('\n');
  for (const [index, row] of rows.entries()) {
    const isHeading = /^\S.*:$/.test(row) && rows[index + 1]?.startsWith('  ');
    if (isHeading) title = row.slice(0, -1);
    else if (/^\S/.test(row)) title = '';
    if (!isHeading) sections.set(title, `${sections.get(title) ?? ''}${row.replace(/^ {2}/, '')}\n`);
  }
  return new Map([...sections].map(([heading, found]) => [heading, found.trim()]).filter(([, found]) => found !== ''));
}

function usageOf(command) {
  return command.createHelp().commandUsage(command);
}

function itemOfOption(option) {
  const help = all.createHelp();
  return { terms: [help.optionTerm(option)], text: help.optionDescription(option) };
}

function itemOfVariables({ env, flags }) {
  if (env === undefined) return [];
  const flag = flags.split(' ').at(-2);
  return [
    { terms: env, text: `value for \`${flag}\`${env.length > 1 ? '; the first variable that is set counts' : ''}` },
  ];
}
