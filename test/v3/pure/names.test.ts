import { expect, test } from 'vitest';
import { queuePath } from '../../../src/v3/locks/reading.ts';
import { checkV3Options } from '../../../src/v3/options.ts';

test.each([
  ['/_locks', 'migrate', '/_locks/migrate'],
  ['/locks', 'a//b/', '/locks/a//b/'],
  ['', '/locks/migrate', '/locks/migrate'],
  ['', 'migrate', 'migrate'],
])('below the prefix %j, the lock %j has the keys of %j', (prefix, name, path) => {
  expect(queuePath(prefix, name)).toBe(path);
});

test('a name that begins with "/" is refused below a prefix: it was meant as a whole key', () => {
  expect(() => queuePath('/_locks', '/locks/migrate')).toThrow(
    new RangeError(
      'lock name must not begin with "/" below the lockPrefix "/_locks", got "/locks/migrate": with an empty lockPrefix, it is used as it is',
    ),
  );
});

test('a prefix with a "/" at its end is refused: a "/" follows it anyway', () => {
  expect(() => checkV3Options({ lockPrefix: '/locks/' })).toThrow(
    new RangeError('lockPrefix must not end with "/", got "/locks/"'),
  );
  expect(checkV3Options({ lockPrefix: '/locks' }).lockPrefix).toBe('/locks');
  expect(checkV3Options({ lockPrefix: '' }).lockPrefix).toBe('');
});
