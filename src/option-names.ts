import { show } from './checks.ts';
import { suggestionFor } from './suggestions.ts';

/**
 * The names of all options of an options object. Write a table as `{ … } satisfies OptionNames<Options>`: TypeScript then
 * refuses a table that lacks an option or has another one.
 */
export type OptionNames<Options> = Readonly<Record<keyof Options, true>>;

/**
 * Refuses an option that does not exist, which would otherwise have no effect, even if its value is undefined. Ignores
 * inherited properties.
 * @throws {TypeError} if `options` is not an object of options; the message shows it
 * @throws {TypeError} if an option does not exist; the message names it and suggests another one
 */
export function checkOptionNames(options: unknown, names: Readonly<Record<string, true>>): asserts options is object {
  if (!isOptions(options)) throw new TypeError(`options must be an object, got ${show(options)}`);
  for (const name in options) {
    // Comparing with true also refuses names that each object inherits, such as "constructor".
    if (names[name] === true || !Object.hasOwn(options, name)) continue;
    throw new TypeError(`unknown option ${show(name)}: ${suggestionFor(name, Object.keys(names))}`);
  }
}

/** False for objects that have other things than options, such as arrays and signals. */
function isOptions(value: unknown): value is object {
  if (typeof value !== 'object' || value === null) return false;
  // The objects of another realm, such as a test of Jest, and instances of classes have other prototypes.
  return (
    Object.getPrototypeOf(value) === Object.prototype || Object.prototype.toString.call(value) === '[object Object]'
  );
}
