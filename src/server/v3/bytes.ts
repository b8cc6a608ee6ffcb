/** Keys and values of etcd v3 are bytes. Here they are strings with one byte in each code unit, so that `<` compares bytes. */
export type Bytes = string;

/** The byte 0. As the end of a range it means: all keys from the start on. */
export const FROM_KEY: Bytes = '\0';

/** Keys as a request names them. */
export interface KeyRange {
  readonly key: Bytes;
  /** Empty: only the key itself. The byte 0: all keys from the key on. Else the first key behind the range. */
  readonly range_end: Bytes;
}

export const isIn = ({ key, range_end: end }: KeyRange, other: Bytes): boolean => {
  if (end === '') return other === key;
  return other >= key && (end === FROM_KEY || other < end);
};

/** Returns the number of bytes of a key and its value. */
export const sizeOf = ({ key, value }: { readonly key: Bytes; readonly value: Bytes }): number =>
  key.length + value.length;

/** Compares two strings, numbers or bigints for a sort. */
export const compare = <T extends Bytes | bigint>(one: T, other: T): number => (one < other ? -1 : one > other ? 1 : 0);
