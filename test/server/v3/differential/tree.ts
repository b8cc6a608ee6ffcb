import fc from 'fast-check';

/** A revision that depends on the time of the request: the store's latest one minus `behind`. */
export interface Behind {
  readonly behind: number;
  readonly asText: boolean;
}

/** A message of a random sequence, before it is encoded. */
export type Tree = string | number | boolean | null | Behind | readonly Tree[] | { readonly [name: string]: Tree };

const isBehind = (tree: object): tree is Behind => 'behind' in tree;

/** Returns the message to send. @param latest the store's revision */
export function grown(tree: Tree, latest: number, camelCase: boolean): unknown {
  if (typeof tree !== 'object' || tree === null) return tree;
  if (Array.isArray(tree)) return tree.map((one) => grown(one, latest, camelCase));
  if (isBehind(tree)) return tree.asText ? String(latest - tree.behind) : latest - tree.behind;
  const named = camelCase ? (name: string) => name.replace(/_([a-z])/g, (_, letter) => letter.toUpperCase()) : String;
  return Object.fromEntries(Object.entries(tree).map(([name, one]) => [named(name), grown(one, latest, camelCase)]));
}

/** A field of a message, and its chance out of ten to be set. */
type Chance = readonly [chance: number, name: string, value: fc.Arbitrary<Tree>];

const ABSENT = Symbol('absent');

/** A message with some of the fields. */
export const message = (...fields: readonly Chance[]): fc.Arbitrary<Tree> =>
  fc
    .tuple(
      ...fields.map(([chance, , value]) =>
        fc.oneof({ weight: chance, arbitrary: value }, { weight: 10 - chance, arbitrary: fc.constant(ABSENT) }),
      ),
    )
    .map((values) => {
      const set = fields.flatMap(([, name], i) => (values[i] === ABSENT ? [] : [[name, values[i]] as const]));
      return Object.fromEntries(set) as Tree;
    });

/** Mostly usual values, so that most requests of a sequence succeed. */
export const mostly = <T>(usual: fc.Arbitrary<T>, odd: fc.Arbitrary<T>): fc.Arbitrary<T> =>
  fc.oneof({ weight: 9, arbitrary: usual }, { weight: 1, arbitrary: odd });

export const behind = (from: number, to: number): fc.Arbitrary<Tree> =>
  fc.record({ behind: fc.integer({ min: from, max: to }), asText: fc.boolean() });

/** An integer, as a number or as text. */
export const integer = (...values: readonly number[]): fc.Arbitrary<Tree> =>
  fc.constantFrom<Tree>(...values, ...values.map(String));

/** One of the names of an enumeration, or its number. */
export const enumeration = (...names: readonly string[]): fc.Arbitrary<Tree> =>
  fc.constantFrom<Tree>(...names, ...names.map((_, i) => i));

export const flag = mostly(fc.constant<Tree>(true), fc.constantFrom<Tree>(false, null));

export const base64 = (text: string): string => Buffer.from(text, 'latin1').toString('base64');
