/** Random messages over a small space of keys and leases. */
import fc from 'fast-check';
import { base64, behind, enumeration, flag, integer, message, mostly, type Tree } from './tree.ts';

const texts = (...values: readonly string[]): fc.Arbitrary<Tree> => fc.constantFrom<Tree>(...values.map(base64));

export const key = mostly(texts('a', 'b', 'c', 'ab', 'a\0', 'd'), texts('\xff', '\0', '', 'a\xff', 'key/with/slashes'));
export const rangeEnd = mostly(texts('b', 'c', 'e', '\0'), texts('a', '\xff\xff', 'a\0', ''));
const value = mostly(texts('x', 'y', 'z'), texts('', '\0\xff', 'v'.repeat(3000)));
const revision = mostly(behind(0, 8), fc.oneof(behind(-3, -1), integer(0, 1, -1), behind(9, 30)));
const bound = fc.oneof(behind(-1, 8), integer(0, 1, -1));
const order = mostly(enumeration('NONE', 'ASCEND', 'DESCEND'), integer(0));
const target = enumeration('KEY', 'VERSION', 'CREATE', 'MOD', 'VALUE');
/** Ids of leases. Only some exist. */
export const lease = mostly(
  integer(7, 8, 9),
  fc.constantFrom<Tree>('0', '-7', '9007199254740993', '9223372036854775807'),
);

export const range = message(
  [9, 'key', key],
  [5, 'range_end', rangeEnd],
  [3, 'limit', mostly(integer(1, 2, 3), integer(0, -1))],
  [4, 'revision', revision],
  [4, 'sort_order', order],
  [4, 'sort_target', target],
  [2, 'serializable', flag],
  [2, 'keys_only', flag],
  [2, 'count_only', flag],
  [1, 'min_mod_revision', bound],
  [1, 'max_mod_revision', bound],
  [1, 'min_create_revision', bound],
  [1, 'max_create_revision', bound],
);

export const put = message(
  [10, 'key', key],
  [8, 'value', value],
  [3, 'lease', lease],
  [3, 'prev_kv', flag],
  [1, 'ignore_value', flag],
  [1, 'ignore_lease', flag],
);

/** Writes that succeed more often than others. */
export const plainPut = message([10, 'key', key], [9, 'value', value], [3, 'lease', integer(7, 8)]);

export const deleteRange = message([10, 'key', key], [4, 'range_end', rangeEnd], [4, 'prev_kv', flag]);

/** etcd takes one of several properties; which one, if there are more, depends on its version. */
const property = fc.oneof(
  fc.tuple(fc.constant('version'), integer(0, 1, 2)),
  fc.tuple(fc.constant('create_revision'), mostly(behind(0, 8), integer(0))),
  fc.tuple(fc.constant('mod_revision'), mostly(behind(0, 8), integer(0))),
  fc.tuple(fc.constant('value'), value),
  fc.tuple(fc.constant('lease'), lease),
);

const TARGETS: Readonly<Record<string, Tree>> = {
  version: 'VERSION',
  create_revision: 'CREATE',
  mod_revision: 2,
  value: 'VALUE',
  lease: 4,
};

const comparison = fc
  .record({
    property,
    rest: message(
      [10, 'key', key],
      [3, 'range_end', rangeEnd],
      [8, 'result', mostly(enumeration('EQUAL', 'GREATER', 'LESS', 'NOT_EQUAL'), integer(9))],
    ),
    isMixed: mostly(fc.constant(false), fc.constant(true)),
    other: enumeration('VERSION', 'CREATE', 'MOD', 'VALUE', 'LEASE'),
  })
  .map(({ property: [name, wanted], rest, isMixed, other }): Tree => {
    const compared = isMixed ? other : (TARGETS[name] ?? null);
    return { ...(rest as object), target: compared, [name]: wanted };
  });

const asOperation = (name: string, of: fc.Arbitrary<Tree>) => of.map((inner): Tree => ({ [name]: inner }));

const operation = (depth: number): fc.Arbitrary<Tree> =>
  fc.oneof(
    { weight: 4, arbitrary: asOperation('request_range', range) },
    { weight: 6, arbitrary: asOperation('request_put', fc.oneof(put, plainPut)) },
    { weight: 3, arbitrary: asOperation('request_delete_range', deleteRange) },
    ...(depth > 0 ? [{ weight: 2, arbitrary: asOperation('request_txn', transaction(depth - 1)) }] : []),
    { weight: depth > 0 ? 0 : 1, arbitrary: fc.constant<Tree>({}) },
  );

function transaction(depth: number): fc.Arbitrary<Tree> {
  const operations = fc.array(operation(depth), { maxLength: 4, size: 'max' });
  return message(
    [6, 'compare', fc.array(comparison, { maxLength: 2, size: 'max' })],
    [9, 'success', operations],
    [6, 'failure', operations],
  );
}

/**
 * Without `ignore_value` and `ignore_lease` if there is a range up to the byte 0. etcd does not see that such a removal and a put are
 * of one key, and ends if the put wants to keep what is removed.
 */
const harmless = (tree: Tree): Tree => {
  const text = JSON.stringify(tree);
  if (!text.includes(`"range_end":"${base64('\0')}"`)) return tree;
  return JSON.parse(text, (name, one) => (name.startsWith('ignore_') ? undefined : one)) as Tree;
};

export const txn = transaction(2).map(harmless);

/** A transaction of about as many operations as etcd allows. */
export const longTxn = fc
  .record({
    of: fc.constantFrom('compare', 'success', 'failure'),
    length: fc.integer({ min: 125, max: 131 }),
    inner: fc.integer({ min: 0, max: 3 }),
    one: comparison,
  })
  .map(({ of, length, inner, one }): Tree => {
    const read: Tree = { request_range: { key: base64('a'), count_only: true } };
    const nested: Tree = { request_txn: { success: Array.from({ length: inner }, () => read) } };
    return { [of]: Array.from({ length }, (_, i) => (of === 'compare' ? one : i === 0 ? nested : read)) };
  });

export const compaction = message([9, 'revision', mostly(behind(2, 12), revision)], [1, 'physical', flag]);

export const grant = message(
  [10, 'ID', integer(7, 8, 9)],
  [10, 'TTL', mostly(integer(1000, 3600), fc.constantFrom<Tree>('9000000000', '9000000001'))],
);

export const leaseId = message([9, 'ID', lease]);

export const timeToLive = message([9, 'ID', lease], [5, 'keys', flag]);
