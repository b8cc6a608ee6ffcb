import { writeFileSync } from 'node:fs';
import { delimiter, join } from 'node:path';
import { expect, test } from 'vitest';
import { checkCommand } from '../../src/cli/job/command.ts';
import { temporaryDirectory } from '../support/temporary.ts';

test('a command is found behind parts of PATH that cannot be searched', () => {
  const file = join(temporaryDirectory(), 'file');
  writeFileSync(file, '');
  const path = [join(file, 'bin'), `/${'x'.repeat(300)}`, '/bin'].join(delimiter);
  expect(() => checkCommand('sh', path)).not.toThrow();
  expect(() => checkCommand('no-such-command', path)).toThrow('command not found: "no-such-command"');
});
