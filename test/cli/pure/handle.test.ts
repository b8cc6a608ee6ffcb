import { expect, test } from 'vitest';
import { formatHandle, type Handle, parseHandle } from '../../../src/cli/handles/handle.ts';

test('a handle of any name is one word without characters that a shell changes', () => {
  const handle: Handle = {
    api: 'both',
    ttl: 5,
    fencingToken: 7n,
    clusterId: 'ab',
    uuid: '0123456789abcdef0123456789abcdef',
    lockPrefix: '',
    name: 'a b:c\'d"e$(f)`~!*&;|<>\\%é/g\n',
    id: '1',
  };
  expect(formatHandle(handle)).toMatch(/^[\w:/.%-]+$/);
  expect(parseHandle(formatHandle(handle))).toEqual(handle);
});
