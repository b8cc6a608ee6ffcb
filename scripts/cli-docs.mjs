// `npm run docs`: writes docs/cli.md, or the given file, from the help texts of the built command line.
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { connectionSettings } from '../dist/cli/connection.js';
import { codeOf, endings } from '../dist/cli/exit-codes.js';
import { CONNECTING, program } from '../dist/cli/program.js';
import { root } from './run.mjs';

const [file = join(root, 'docs/cli.md')] = process.argv.slice(2);
const all = program();
const commands = all.commands.filter((command) => command.name() !== 'help');
const options = all.createHelp().visibleOptions(all);
const isForEvery = ({ helpGroupHeading }) => helpGroupHeading === 'Options for every command:';

const chapters = {
  NAME: `etcd-v2-lock - ${proof(all.description())}`,
  SYNOPSIS: code([...commands, all].map(usageOf)),
  DESCRIPTION: `Each command reports its result by its exit code. Data is printed on stdout, as JSON with \`--json\`. Errors and warnings are
printed on stderr. Colours are used on terminals only. Control, bidi and other invisible characters in names, values and messages are printed as
\`\\uXXXX\`, which a JSON parser reads as the same character.

Errors about credentials and unknown flags do not show the value.

${lines(options.filter((option) => !isForEvery(option)).map(itemOfOption))}`,
  COMMANDS: commands.map(chapterOf).join('\n\n'),
  'OPTIONS FOR EVERY COMMAND': `These options can be given before or after the command name. Flags take precedence over environment variables. Empty variables
count as unset.

${lines(options.filter(isForEvery).map(itemOfOption))}`,
  ENVIRONMENT: lines([
    ...connectionSettings.flatMap(itemOfVariables),
    item(['NO_COLOR'], 'disable colours on terminals'),
    item(['DEBUG'], '`etcd-v2-lock:*` logs each request on stderr, without passwords'),
  ]),
  'EXIT STATUS': `The exit codes follow flock(1), timeout(1) and sysexits.h.

| code | |
| --- | --- |
${lines(Object.entries(endings).map(([ending, meaning]) => `| ${codeOf(ending)} | ${meaning} |`))}`,
  EXAMPLES: code(commands.flatMap((command) => sectionsAfter(command).get('Examples') ?? [])),
  'SEE ALSO': 'flock(1), timeout(1), etcdctl(1)',
};

const HEAD = '# etcd-v2-lock(1)\n\n[//]: # (Made by "npm run docs" from the help texts: change it there.)\n';
const parts = Object.entries(chapters).map(([title, text]) => `\n## ${title}\n\n${text}\n`);
writeFileSync(file, HEAD + parts.join(''));

/** Returns the chapter of one command: usage, description, arguments, options, and the rest of its help. */
function chapterOf(command) {
  const help = command.createHelp();
  const taken = [
    ...help.visibleArguments(command).map((argument) => item([argument.name()], help.argumentDescription(argument))),
    ...help
      .visibleOptions(command)
      .filter(({ long }) => long !== '--help')
      .map(itemOfOption),
  ];
  const sections = [...sectionsAfter(command)].filter(([title]) => title !== 'Examples');
  return [
    `### ${command.name()}`,
    code([usageOf(command)]),
    proof(command.description()),
    lines(taken),
    ...sections.map(([title, found]) => (title === '' ? proof(found) : `${title}:\n\n${code([found])}`)),
  ].join('\n\n');
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
  return item([help.optionTerm(option)], help.optionDescription(option));
}

function itemOfVariables({ env, flags }) {
  if (env === undefined) return [];
  const flag = flags.split(' ').at(-2);
  return [item(env, `value for \`${flag}\`${env.length > 1 ? '; the first variable that is set counts' : ''}`)];
}

function item(terms, text) {
  return `- ${terms.map((term) => `\`${term}\``).join(', ')}: ${proof(text)}`;
}

/** Escapes characters outside of code that Markdown would read as a tag or as emphasis. */
function proof(text) {
  return text.replace(/`[^`]*`|(?<!\w)[<_*]/g, (part) => (part.startsWith('`') ? part : `\\${part}`));
}

function code(rows) {
  return lines(['```text', ...rows, '```']);
}

function lines(rows) {
  return rows.join('\n');
}
