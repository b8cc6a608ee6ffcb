/**
 * Option names of python-etcd and other libraries, in lower case and without "_", each with the option to use instead. If several
 * rows have a name, the first row whose option exists is used. A note says how the meaning differs.
 */
const OTHER_NAMES: readonly (readonly [names: readonly string[], option: string, note?: string])[] = [
  [['url', 'urls', 'uri', 'host', 'hosts', 'port', 'server', 'servers', 'nodes', 'protocol'], 'endpoints'],
  [['url', 'address', 'hostname'], 'host'],
  [['cacert', 'cafile', 'rootcertificate'], 'ca'],
  [['lease'], 'ttl'],
  [['lease'], 'lockTtl'],
  [['blocking'], 'ifAvailable', 'which is its opposite'],
  [['ifavailable'], 'blocking', 'which is its opposite'],
  [['waitindex'], 'after', 'whose value is one less'],
];

/** Options of other libraries that this package cannot offer, with the reason. */
const NOT_OFFERED: ReadonlyMap<string, string> = new Map([['steal', 'a holder cannot be forced to stop']]);

/** A unit of time at the end of an option name. */
const UNIT = /(?:in)?(?:ms|msecs?|millis|milliseconds|secs?|seconds)$/;

/** Minimum length of a name that is matched as a part of another: a shorter one is part of too many names. */
const SHORTEST_PART = 3;

interface Match {
  readonly option: string;
  readonly note?: string | undefined;
}

/**
 * Returns what to use instead of an unknown option, as the second half of a message.
 * @param options the names of all options
 */
export function suggestionFor(name: string, options: readonly string[]): string {
  const simple = simplified(name);
  const bare = simple.replace(UNIT, '');
  const timed = bare === simple ? undefined : matchOf(bare, options);
  if (timed) return `use "${timed.option}", in seconds`;
  const match = matchOf(simple, options);
  if (!match) return NOT_OFFERED.get(simple) ?? `the options are ${options.join(', ')}`;
  return match.note === undefined ? `did you mean "${match.option}"?` : `use "${match.option}", ${match.note}`;
}

const simplified = (name: string): string => name.replace(/[_-]/g, '').toLowerCase();

function matchOf(name: string, options: readonly string[]): Match | undefined {
  const same = options.find((option) => simplified(option) === name);
  if (same !== undefined) return { option: same };
  const other = OTHER_NAMES.find(([names, option]) => names.includes(name) && options.includes(option));
  if (other) return { option: other[1], note: other[2] };
  const near =
    options.find((option) => isPart(simplified(option), name) || isPart(name, simplified(option))) ??
    options.find((option) => isTypo(name, simplified(option)));
  return near === undefined ? undefined : { option: near };
}

const isPart = (part: string, whole: string): boolean => part.length >= SHORTEST_PART && whole.includes(part);

function isTypo(name: string, option: string): boolean {
  const most = name.length > 4 ? 2 : 1;
  return Math.abs(name.length - option.length) <= most && distance(name, option) <= most;
}

/** Returns the number of characters to insert, remove or replace to turn one text into the other (Levenshtein). */
function distance(a: string, b: string): number {
  let row = Array.from({ length: b.length + 1 }, (_, i) => i);
  for (const [i, char] of [...a].entries()) {
    const next = [i + 1];
    for (const [j, other] of [...b].entries())
      next.push(Math.min((next[j] ?? 0) + 1, (row[j + 1] ?? 0) + 1, (row[j] ?? 0) + (char === other ? 0 : 1)));
    row = next;
  }
  return row.at(-1) ?? 0;
}
