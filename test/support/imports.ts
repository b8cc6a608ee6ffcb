/** One import of one file: `python/lock.ts` imports `recipe/lease.ts`, or a package such as `undici` or `node:net`. */
export interface Arrow {
  readonly from: string;
  readonly to: string;
}

const BASICS = ['errors', 'time', 'cancellation', 'checks', 'pending-work', 'debug'];

/** What the files of a room may import of the project: rooms, or single files. */
const mayEnter: Readonly<Record<string, readonly string[]>> = {
  printable: [],
  debug: ['printable'],
  errors: ['printable'],
  time: [],
  cancellation: ['time'],
  checks: ['printable'],
  'pending-work': ['time', 'cancellation'],
  http: ['http', ...BASICS],
  v2: ['v2', 'http', 'recipe', ...BASICS],
  recipe: ['recipe', 'v2', ...BASICS],
  manager: ['manager', 'recipe', 'v2', ...BASICS],
  python: ['python', 'recipe', 'v2', ...BASICS],
  server: ['server', 'v2', ...BASICS],
  index: ['python', 'manager', 'recipe', 'v2', 'http', 'errors'],
  cli: ['cli', 'index', 'python', 'manager', 'recipe', 'v2', 'http', 'server', 'printable', ...BASICS],
};

/** Who may import a package; one that is not here is for nobody. */
const mayUse: Readonly<Record<string, readonly string[]>> = {
  commander: ['cli'],
  undici: ['http'],
  uuid: ['v2/locks/entry.ts'],
  debug: ['debug'],
  'node:async_hooks': ['manager/reentrance.ts'],
  'node:diagnostics_channel': ['manager/trace.ts'],
  'node:events': ['cancellation'],
};

/** Rooms that speak to no network and touch no machine: none of Node's own modules but where it is named above. */
const pure = ['printable', 'errors', 'time', 'cancellation', 'checks', 'recipe', 'manager', 'python', 'index'];

/** Every import in the source: static, re-exported, for types, for effect, dynamic or by `require`. */
export function arrowsOf(from: string, source: string): Arrow[] {
  const importing = /(?<![.\w])(?:(?:from|import)\s*|(?:import|require)\s*\(\s*)(['"`])([^'"`\n]+)\1/g;
  return [...withoutComments(source).matchAll(importing)].map(([, , to = '']) => ({ from, to: targetOf(from, to) }));
}

/** Why an arrow may not be; undefined where it may. */
export function whyForbidden({ from, to }: Arrow): string | undefined {
  const room = roomOf(from);
  const entries = mayEnter[room];
  if (!entries) return `${from} is in no known room`;
  if (to.startsWith('node:') && !pure.includes(room)) return undefined;
  if (!/\.ts$/.test(to)) {
    const users = mayUse[to];
    if (!users) return `nobody may import ${to}, but ${from} does`;
    return users.some((user) => covers(user, from)) ? undefined : `${from} may not import ${to}`;
  }
  return entries.some((entry) => covers(entry, to)) ? undefined : `${from} may not import ${to}`;
}

/** Whether a file does nothing but re-export. */
export function onlyReExports(source: string): boolean {
  const rest = withoutComments(source).replace(
    /\bexport\s+(?:type\s+)?(?:\*(?:\s+as\s+\w+)?|\{[^}]*\})\s+from\s+(['"])[^'"]+\1\s*;?/g,
    '',
  );
  return rest.trim() === '';
}

function withoutComments(source: string): string {
  return source.replace(/\/\*[\s\S]*?\*\//g, '').replace(/(^|\s)\/\/.*$/gm, '$1');
}

const roomOf = (file: string): string => file.split('/')[0]?.replace(/\.ts$/, '') ?? '';

const covers = (entry: string, file: string): boolean => entry === file || entry === roomOf(file);

function targetOf(from: string, to: string): string {
  return to.startsWith('.') ? new URL(to, `file:///${from}`).pathname.slice(1) : to;
}
