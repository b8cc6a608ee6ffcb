/** Something of each store. */
export type Pair<T> = Readonly<Record<'v2' | 'v3', T>>;
