import { show } from './checks.ts';
import { suggestionFor } from './suggestions.ts';

/**
 * A table with the names of all options of an options object. Write it as `{ … } satisfies OptionNames<Options>`: TypeScript then
 * rejects a missing or an unknown name.
 */
export type OptionNames<Options> = Readonly<Record<keyof Options, true>>;

/**
 * Throws for an option that does not exist, even if its value is undefined: without this check, a misspelt option would have no
 * effect. Ignores inherited properties.
 * @throws {TypeError} if `options` is not an object of options; the message shows it
 * @throws {TypeError} if an option does not exist; the message names it and suggests another one
 */
export function checkOptionNames(options: unknown, names: Readonly<Record<string, true>>): asserts options is object {
  if (!isOptions(options)) throw new TypeError(`options must be an object, got ${show(options)}`);
  for (const name in options) {
    // Compare with true: `names` also has the properties that every object inherits, such as "constructor".
    if (names[name] === true || !Object.hasOwn(options, name)) continue;
    throw new TypeError(`unknown option ${show(name)}: ${suggestionFor(name, Object.keys(names))}`);
  }
}

/** Whether the value can be an object of options. False for arrays, signals and the like. */
function isOptions(value: unknown): value is object {
  if (typeof value !== 'object' || value === null) return false;
  // Also allow objects of another realm (as in Jest tests) and of a class: their prototype is not this `Object.prototype`.
  return (
    Object.getPrototypeOf(value) === Object.prototype || Object.prototype.toString.call(value) === '[object Object]'
  );
}
