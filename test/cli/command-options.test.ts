// Where the options of `run` and `elect` end, and those of the command begin.
import type { Command } from 'commander';
import { expect, test } from 'vitest';
import { program } from '../../src/cli/program.ts';
import { freshName } from '../support/locks.ts';
import { run } from './running.ts';

/** Returns the options that `run` or `elect` takes from these words, and the words that remain. Nothing is run. */
function parsed(subcommand: string, ...words: readonly string[]) {
  const command = program().commands.find((found) => found.name() === subcommand) as Command;
  const { operands, unknown } = command.parseOptions([...words]);
  const given = Object.entries(command.opts()).filter(([name]) => command.getOptionValueSource(name) === 'cli');
  return { operands, unknown, options: Object.fromEntries(given) };
}

const COMMANDS = [
  'echo -n 3 hi',
  'sleep 2 --endpoints http://other:2379',
  'job --shared --ttl 5 --if-available --timeout 1 --once 1h -E 0',
  'job --value x --label y --identity z',
  'job --user root:secret --password x --api both --lock-prefix /x',
  'job -v -q --verbose',
  'job --help',
  'job -h -V --version',
  'job --nosuch --ttl',
  'kubectl exec -n 3 pod -- sh -c true',
];

for (const subcommand of ['run', 'elect']) {
  test.each(COMMANDS)(`${subcommand} leaves all words of the command to it: %s`, (line) => {
    const command = line.split(' ');
    const operands = ['name', ...command];
    const ttl = { ttl: 7 };
    expect(parsed(subcommand, 'name', ...command)).toEqual({ operands, unknown: [], options: {} });
    expect(parsed(subcommand, 'name', '--', ...command)).toEqual({ operands, unknown: [], options: {} });
    expect(parsed(subcommand, '--ttl', '7', 'name', ...command)).toEqual({ operands, unknown: [], options: ttl });
    expect(parsed(subcommand, 'name', '--ttl=7', ...command)).toEqual({ operands, unknown: [], options: ttl });
    expect(parsed(subcommand, 'name', '--ttl', '7', '--', ...command)).toEqual({
      operands,
      unknown: [],
      options: ttl,
    });
    expect(parsed(subcommand, '--', 'name', ...command)).toEqual({ operands, unknown: [], options: {} });
  });

  test(`${subcommand} takes options before and after the name`, () => {
    const words = ['-v', '--endpoints', 'a:1', 'name', '--label', 'x', '--user', 'a:b', '--', '--odd', '--ttl', '7'];
    expect(parsed(subcommand, ...words)).toEqual({
      operands: ['name', '--odd', '--ttl', '7'],
      unknown: [],
      options: { verbose: true, endpoints: 'a:1', label: 'x', user: 'a:b' },
    });
  });

  test(`${subcommand} takes no option after "--", even before the command`, () => {
    expect(parsed(subcommand, '--', 'name', '--ttl', '7', 'job')).toEqual({
      operands: ['name', '--ttl', '7', 'job'],
      unknown: [],
      options: {},
    });
  });

  test.each([
    ['before the name', ['--nosuch', 'name', 'job', '--help']],
    ['after the name', ['name', '--nosuch', 'job', '--help']],
    ['before "--"', ['name', '--nosuch', '--', 'job', '--help']],
  ])(`${subcommand} refuses an unknown option %s, whatever the command's options are`, (_, words) => {
    expect(parsed(subcommand, ...words)).toMatchObject({ unknown: ['--nosuch'] });
  });
}

test('a command that is given without "--" gets all its arguments, and the lock is the one that was asked for', async () => {
  const name = freshName();
  const job = `const { ETCD_ENDPOINTS, ETCD_LOCK_KEY } = process.env;
    const { node } = await (await fetch(ETCD_ENDPOINTS + '/v2/keys' + ETCD_LOCK_KEY)).json();
    console.log(JSON.stringify([node.value, ...process.argv.slice(1)]));`;
  const args = [
    '-n',
    '3',
    '--endpoints',
    'http://127.0.0.1:1',
    '--shared',
    '--ttl',
    '5',
    '--user',
    'a:b',
    '-v',
    '--help',
  ];
  const result = await run('--label', '', name, process.execPath, '--input-type=module', '-e', job, '', ...args);
  expect(result).toMatchObject({ code: 0, stderr: '' });
  const [value, empty, ...got] = JSON.parse(result.stdout);
  expect(value).toMatch(/^[\da-f]{32}$/);
  expect([empty, ...got]).toEqual(['', ...args]);
});
