// Compiled, never run: tables of option names that the compiler must accept, and tables that it must refuse.

import type { OptionNames } from '../../src/base/option-names.ts';
import type { RequestOptions } from '../../src/index.ts';

interface Options {
  readonly ttl: number;
  readonly timeout?: number | undefined;
}

export const complete = { ttl: true, timeout: true } satisfies OptionNames<Options>;
// @ts-expect-error timeout is missing
export const incomplete = { ttl: true } satisfies OptionNames<Options>;
// @ts-expect-error there is no such option
export const excessive = { ttl: true, timeout: true, nonsense: true } satisfies OptionNames<Options>;
// @ts-expect-error an option that is added to an interface is missing in its table
export const outdated = { ...complete, mode: true } satisfies OptionNames<RequestOptions & { readonly added?: string }>;
