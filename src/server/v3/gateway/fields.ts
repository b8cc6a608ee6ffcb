/** The tables by which the JSON gateway decodes and encodes messages: the fields of each kind of message. */

/** The type of a field. Requests may give 64-bit integers as numbers or as text; answers have text. */
export type Field =
  | 'bytes'
  | 'string'
  | 'int64'
  | 'uint64'
  | 'uint32'
  | 'bool'
  | Enumeration
  | { readonly message: () => Fields }
  | { readonly list: Field }
  | OneOf;

export interface Enumeration {
  /** Its name in Go. */
  readonly enumeration: string;
  /** The names of its values, by number. */
  readonly names: readonly string[];
}

/** A field of which a message should have at most one of several. */
export interface OneOf {
  /** Name of the group. */
  readonly oneOf: string;
  readonly field: Field;
}

export type Fields = Readonly<Record<string, Field>>;

/** A kind of message: the types of its fields, in etcd's order. */
export type Kind<T> = { readonly [Name in keyof T]-?: Field };

export type IntegerType = 'int64' | 'uint64' | 'uint32' | 'int32';

export function camelCased(name: string): string {
  let spelled = spellings.get(name);
  if (spelled === undefined) {
    spelled = name.replace(/_([a-z])/g, (_, letter: string) => letter.toUpperCase());
    spellings.set(name, spelled);
  }
  return spelled;
}

/** The names of fields in camelCase, which are looked up for each request. */
const spellings = new Map<string, string>();

export function zeroOf(field: Field): unknown {
  if (typeof field === 'object') return 'enumeration' in field ? 0 : 'list' in field ? [] : undefined;
  if (field === 'bool') return false;
  if (field === 'uint32') return 0;
  return field === 'int64' || field === 'uint64' ? 0n : '';
}

const RANGES: Readonly<Record<IntegerType, (value: bigint) => boolean>> = {
  int64: (value) => BigInt.asIntN(64, value) === value,
  uint64: (value) => BigInt.asUintN(64, value) === value,
  uint32: (value) => BigInt.asUintN(32, value) === value,
  int32: (value) => BigInt.asIntN(32, value) === value,
};

/** Returns an integer as messages have it; undefined if it is out of the type's range. */
export function integerOf(type: IntegerType, value: bigint): bigint | number | undefined {
  if (!RANGES[type](value)) return undefined;
  return type.endsWith('64') ? value : Number(value);
}
