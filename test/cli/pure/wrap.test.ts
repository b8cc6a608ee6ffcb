import { expect, test } from 'vitest';
import { program } from '../../../src/cli/program.ts';
import { wrapped } from '../../../src/cli/wrap.ts';

test('a paragraph that is too wide is filled again, and one that fits stays as it is', () => {
  expect(wrapped('one two three four\nfive six\n\nshort\nlines', 10)).toBe(
    'one two\nthree four\nfive six\n\nshort\nlines',
  );
  expect(wrapped('\none two three\n', 10)).toBe('\none two\nthree\n');
});

test('a list item keeps its indentation, and the next one begins a line of its own', () => {
  expect(wrapped('- one two three\n  four\n- five', 10)).toBe('- one two\n  three\n  four\n- five');
});

test('the text of a row stays in its column', () => {
  expect(wrapped('Columns:\n  NAME  the name of it\n  #     place', 16)).toBe(
    'Columns:\n  NAME  the name\n        of it\n  #     place',
  );
});

test('a word that is too long stays whole', () => {
  expect(wrapped('see https://example.com/a/long/path for more', 12)).toBe(
    'see\nhttps://example.com/a/long/path\nfor more',
  );
});

const helpOf = (name: string, width: number): string => {
  const all = program();
  const command = all.commands.find((one) => one.name() === name) ?? all;
  let text = '';
  command.configureOutput({
    writeOut: (part) => {
      text += wrapped(part, width);
    },
    getOutHelpWidth: () => width,
  });
  command.outputHelp();
  return text;
};

test.each(['', ...program().commands.map((command) => command.name())])(
  'the help of "%s" fits 80 columns, but for examples, and loses no word',
  (name) => {
    const narrow = helpOf(name, 80);
    const examples = narrow.indexOf('\nExamples:');
    for (const line of narrow.slice(0, examples < 0 ? undefined : examples).split('\n'))
      expect(line.length, line).toBeLessThanOrEqual(80);
    const words = (text: string): string[] => text.split(/\s+/);
    expect(words(narrow)).toEqual(words(helpOf(name, 1000)));
  },
);

test('the help of the program shows the commands before the options, and those of the connection after the others', () => {
  const help = helpOf('', 80);
  const places = ['Usage:', 'Commands:', 'Options:', 'Connection and authentication options'].map((heading) =>
    help.indexOf(`\n${heading}`.replace('\nUsage', 'Usage')),
  );
  expect(places.every((place) => place >= 0)).toBe(true);
  expect(places).toEqual(places.toSorted((a, b) => a - b));
});
