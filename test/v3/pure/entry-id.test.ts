import { expect, test } from 'vitest';
import { formatValue } from '../../../src/recipe/entries/entry-value.ts';
import { idOf } from '../../../src/v3/rpc/keys.ts';

const UUID = '0123456789abcdef0123456789abcdef';
const OTHER = 'fedcba9876543210fedcba9876543210';

test.each([
  { mode: 'exclusive' },
  { mode: 'shared' },
  { limit: 3 },
  { identity: OTHER },
  { identity: `${OTHER}@a:${OTHER}` },
  { identity: OTHER, limit: 3, label: OTHER, published: OTHER },
  { label: OTHER },
  { label: `sha256:${OTHER}` },
  { published: OTHER },
  { published: `@${OTHER}` },
  { label: OTHER, published: `sha256:${OTHER}${OTHER}` },
] as const)('the key of an entry ends with its uuid, not with other texts like one: %j', (parts) => {
  const value = formatValue(
    { mode: 'exclusive', limit: undefined, identity: undefined, label: undefined, ...parts },
    UUID,
  );
  expect(idOf(value)).toBe(UUID);
});

test.each(['a', '', `${UUID}0`, `x${UUID}`, `sha256${UUID}${OTHER}`])(
  'a value without such a uuid, such as %j, has a key of its own',
  (value) => {
    expect(idOf(value)).toMatch(/^[0-9a-f]{32}$/);
    expect(value).not.toContain(idOf(value));
  },
);
