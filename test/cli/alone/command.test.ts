import { statSync, writeFileSync } from 'node:fs';
import { delimiter, join } from 'node:path';
import { expect, onTestFinished, test, vi } from 'vitest';
import { checkCommand } from '../../../src/cli/job/command.ts';
import { temporaryDirectory } from '../../support/temporary.ts';

// Root, who may run the tests, may search every directory.
vi.mock(import('node:fs'), async (original) => {
  const fs = await original();
  return { ...fs, statSync: vi.fn(fs.statSync) as unknown as typeof fs.statSync };
});

test('a command is found behind parts of PATH that cannot be searched', () => {
  const file = join(temporaryDirectory(), 'file');
  writeFileSync(file, '');
  const path = [join(file, 'bin'), `/${'x'.repeat(300)}`, '/bin'].join(delimiter);
  expect(() => checkCommand('sh', path)).not.toThrow();
  expect(() => checkCommand('no-such-command', path)).toThrow('command not found: "no-such-command"');
});

test.each([
  ['/denied/backup', 126, 'cannot run /denied/backup: permission denied'],
  ['backup', 127, 'command not found: "backup"'],
])('the command %s in a directory that this user may not search: exit code %i', (command, exitCode, message) => {
  vi.mocked(statSync).mockImplementation(() => {
    throw Object.assign(new Error('permission denied'), { code: 'EACCES' });
  });
  onTestFinished(() => void vi.mocked(statSync).mockReset());
  expect(() => checkCommand(command, '/denied')).toThrow(expect.objectContaining({ exitCode, message }));
});
