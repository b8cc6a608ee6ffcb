/**
 * What a contender tells of itself. Times are milliseconds on the machine's monotonic clock, which all processes share.
 * Where a moment has two sides, it is the one that makes a hold look longest: `held` once it is known, `released` before the
 * release is sent.
 */
export type Event = { readonly at: number; readonly who: string } & (
  | { readonly kind: 'asks' }
  | { readonly kind: 'held'; readonly token: string; readonly mode?: 'exclusive' | 'shared' }
  /** The contender knows: by its signal, or by looking. */
  | { readonly kind: 'lost'; readonly token: string }
  | { readonly kind: 'released'; readonly token: string }
  /** The wait ended without a hold. */
  | { readonly kind: 'failed'; readonly why: string }
);
