import fc from 'fast-check';

/** A number that depends on the time of the request: the store's index minus `behind`. */
export interface Behind {
  readonly behind: number;
}

/** The last known index at which the key of the request changed. */
export interface Current {
  readonly current: true;
}

export type Text = string | Behind | Current;
export type Param = readonly [name: string, value: Text];

/** A request of a random sequence, before it is encoded. */
export interface Ask {
  readonly method: string;
  /** A percent-encoded path below the directory of the sequence, a key created in order (0 is the last one), or a whole key. */
  readonly path: string | { readonly inOrder: number } | { readonly whole: string };
  readonly query: readonly Param[];
  readonly form: readonly Param[] | undefined;
}

const NAMES = ['a', 'a/b', 'a/b/c', 'ab', 'b', '_h', 'a/_h', '_h/x', 'ü', '中 %', 'q?#', 'x+y', '1'];
const ODD_PATHS = [
  '',
  '/',
  'a/',
  'a//b',
  'a/../b',
  './a',
  'a%2Fb',
  'a%2fb%2F',
  '%41',
  '%ff',
  '%ff(',
  '%fe',
  '%e4%b8',
  '%ed%a0%80',
  '%ef%bf%bd',
  'a%00b',
  '%0A',
  '.%2E/x',
  '%zz',
  'x!*()',
  '文',
];
const VALUES = [
  'u1',
  'u2',
  '',
  'x'.repeat(3000),
  'ü中😀',
  '<a href="x">&amp;\\</a>',
  '\u0000\b\f\n\r\t\u007f',
  ' a b ',
  'a+b',
  'a=b',
  '\u2028\u2029',
];
const FLAGS = ['true', 'false', '1', '0', 't', 'F', 'TRUE', 'False', 'True', 'yes', '', 'tRUE', '2', ' true'];
/** Valid TTLs are multiples of a hundred, and none expires while the sequences run. */
const TTLS = [
  '1000',
  '3600',
  '',
  '001000',
  '-10',
  '1.5',
  'abc',
  '+50',
  ' 50',
  '1e3',
  '0x10',
  '18446744073709551616',
  // 10,100 seconds, because seconds are counted modulo 2^64 nanoseconds.
  '9223372036854785908',
  '٣',
];
const INDEXES = [
  '0',
  '-1',
  '1.5',
  'abc',
  '',
  '99999999999999999999',
  '18446744073709551615',
  '9007199254740993',
  '00',
  '+1',
  '1000000',
];

const behind = (from: number, to: number): fc.Arbitrary<Behind> =>
  fc.integer({ min: from, max: to }).map((distance) => ({ behind: distance }));

/** Mostly usual values, so that most requests of a sequence succeed. */
const mostly = <T>(usual: fc.Arbitrary<T>, odd: fc.Arbitrary<T>): fc.Arbitrary<T> =>
  fc.oneof({ weight: 9, arbitrary: usual }, { weight: 1, arbitrary: odd });

const yesOrNo = fc.constantFrom('true', 'true', 'true', 'false');
const flag = mostly<Text>(yesOrNo, fc.constantFrom(...FLAGS));
const anyValue = mostly<Text>(fc.constantFrom('u1', 'u1', 'u1', 'u2'), fc.constantFrom(...VALUES));
const current = fc.constant<Current>({ current: true });
const anyIndex = mostly<Text>(fc.oneof(current, current, behind(0, 4)), fc.constantFrom(...INDEXES));
const anyTtl = mostly<Text>(fc.constantFrom('1000', '3600'), fc.constantFrom(...TTLS));

const path = fc.oneof(
  { weight: 20, arbitrary: fc.constantFrom('a', 'a', 'b', 'a/b') },
  { weight: 14, arbitrary: fc.constantFrom(...NAMES.map((name) => name.split('/').map(encodeURIComponent).join('/'))) },
  { weight: 2, arbitrary: fc.constantFrom(...ODD_PATHS.map((text) => text.replace('文', encodeURIComponent('文')))) },
  { weight: 2, arbitrary: fc.nat(3).map((inOrder) => ({ inOrder })) },
  { weight: 1, arbitrary: fc.constantFrom({ whole: '' }, { whole: '/' }) },
);

const param = (name: string, value: fc.Arbitrary<Text>) => value.map((text): Param => [name, text]);

/** A random selection of the parameters. `chance` is out of ten. */
const some = (...params: readonly (readonly [chance: number, param: fc.Arbitrary<Param>])[]): fc.Arbitrary<Param[]> =>
  fc
    .tuple(
      ...params.map(([chance, each]) =>
        fc.oneof({ weight: chance, arbitrary: each }, { weight: 10 - chance, arbitrary: fc.constant(undefined) }),
      ),
    )
    .map((list) => list.filter((each) => each !== undefined));

const ask = (method: string, params: fc.Arbitrary<Param[]>): fc.Arbitrary<Ask> =>
  fc.record({ path, params }).map(({ path: to, params: query }) => ({ method, path: to, query, form: undefined }));

/** A request with its parameters in a form, or with some of them in the query. */
const send = (method: string, params: fc.Arbitrary<Param[]>): fc.Arbitrary<Ask> =>
  fc.record({ path, params, split: mostly(fc.constant(0), fc.nat(5)) }).map(({ path: to, params: all, split }) => ({
    method,
    path: to,
    query: all.slice(0, split),
    form: all.slice(split),
  }));

const everyParam = some(
  [4, param('value', anyValue)],
  [3, param('ttl', anyTtl)],
  [2, param('dir', flag)],
  [2, param('prevExist', flag)],
  [2, param('prevValue', anyValue)],
  [2, param('prevIndex', anyIndex)],
  [2, param('refresh', flag)],
  [2, param('recursive', flag)],
  [2, param('sorted', flag)],
  [2, param('quorum', flag)],
  [1, param('noValueOnSuccess', flag)],
  [1, param('stream', flag)],
  [1, param('unknown', anyValue)],
);

const methods = fc.constantFrom('GET', 'HEAD', 'PUT', 'POST', 'DELETE', 'PATCH', 'PUT', 'POST');

/** Requests that read or write. */
export const asks: fc.Arbitrary<Ask> = fc.oneof(
  {
    weight: 6,
    arbitrary: ask('GET', some([5, param('recursive', flag)], [5, param('sorted', flag)], [3, param('quorum', flag)])),
  },
  { weight: 1, arbitrary: ask('HEAD', some([5, param('recursive', flag)])) },
  { weight: 5, arbitrary: send('PUT', some([9, param('value', anyValue)], [3, param('ttl', anyTtl)])) },
  {
    weight: 3,
    arbitrary: send('PUT', some([9, param('dir', flag)], [3, param('ttl', anyTtl)], [2, param('prevExist', flag)])),
  },
  {
    weight: 5,
    arbitrary: send(
      'PUT',
      some(
        [8, param('value', anyValue)],
        [3, param('ttl', anyTtl)],
        [4, param('prevExist', flag)],
        [4, param('prevValue', anyValue)],
        [3, param('prevIndex', anyIndex)],
        [1, param('noValueOnSuccess', flag)],
      ),
    ),
  },
  {
    weight: 2,
    arbitrary: send(
      'PUT',
      some(
        [9, param('ttl', anyTtl)],
        [9, param('refresh', flag)],
        [4, param('prevExist', flag)],
        [3, param('prevValue', anyValue)],
        [1, param('value', anyValue)],
        [1, param('dir', flag)],
      ),
    ),
  },
  {
    weight: 4,
    arbitrary: send('POST', some([9, param('value', anyValue)], [3, param('ttl', anyTtl)], [1, param('dir', flag)])),
  },
  { weight: 3, arbitrary: ask('DELETE', some([3, param('dir', flag)], [3, param('recursive', flag)])) },
  {
    weight: 3,
    arbitrary: ask(
      'DELETE',
      some([5, param('prevValue', anyValue)], [5, param('prevIndex', anyIndex)], [1, param('dir', flag)]),
    ),
  },
  {
    weight: 2,
    arbitrary: fc.record({ method: methods, path, query: everyParam, form: fc.option(everyParam, { nil: undefined }) }),
  },
);

/** Requests that wait for an event. */
export const waits: fc.Arbitrary<Ask> = fc.record({
  method: fc.constant('GET'),
  path,
  form: fc.constant(undefined),
  query: some(
    [5, param('recursive', flag)],
    [6, param('waitIndex', mostly<Text>(behind(-3, 6), fc.constantFrom(...INDEXES)))],
    [2, param('stream', flag)],
    [1, param('quorum', flag)],
  ).map((params): Param[] => [['wait', 'true'], ...params]),
});
