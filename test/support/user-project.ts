import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { text } from 'node:stream/consumers';
import { fileURLToPath } from 'node:url';

const ROOT = fileURLToPath(new URL('../..', import.meta.url));

/** Packages a user's project has besides this one. */
const PACKAGES = ['vitest', 'typescript', '@types/node'];

/** Node's arguments to compile a user's project. */
export const COMPILE = ['node_modules/typescript/bin/tsc', '-p', '.'];

/** A user's tsconfig.json: as strict as possible; checks the package's declarations too. */
export const strictTsconfig = (options: object = {}): string =>
  JSON.stringify({
    compilerOptions: {
      target: 'es2022',
      module: 'nodenext',
      types: ['node'],
      outDir: 'out',
      rootDir: '.',
      strict: true,
      exactOptionalPropertyTypes: true,
      noUncheckedIndexedAccess: true,
      skipLibCheck: false,
      ...options,
    },
  });

export interface CommandResult {
  readonly code: number | null;
  /** Its stdout, then its stderr. */
  readonly output: string;
}

/**
 * Runs Node in a new project that has this package, Vitest and TypeScript installed: once with each list of arguments, until a
 * run fails. Returns the result of the last run.
 * @param packages further packages of the project
 */
export async function runInUserProject(
  files: Readonly<Record<string, string>>,
  runs: readonly (readonly string[])[],
  env: Readonly<Record<string, string>> = {},
  packages: readonly string[] = [],
): Promise<CommandResult> {
  const dir = mkdtempSync(join(tmpdir(), 'etcd-v2-lock-user-'));
  try {
    const linked = {
      'etcd-v2-lock': ROOT,
      ...Object.fromEntries([...PACKAGES, ...packages].map((name) => [name, packageOf(name)])),
    };
    for (const [name, target] of Object.entries(linked)) {
      const link = join(dir, 'node_modules', name);
      mkdirSync(dirname(link), { recursive: true });
      symlinkSync(target, link, 'dir');
    }
    for (const [name, content] of Object.entries({ 'package.json': '{"type":"module"}', ...files }))
      writeFileSync(join(dir, name), content);
    let result: CommandResult = { code: 0, output: '' };
    for (const args of runs) if (result.code === 0) result = await runNode(dir, args, env);
    return result;
  } finally {
    rmSync(dir, { recursive: true, force: true });
  }
}

const packageOf = (name: string): string => join(ROOT, 'node_modules', name);

async function runNode(cwd: string, args: readonly string[], env: Readonly<Record<string, string>>) {
  // The environment of a user's shell, without the variables of Vitest's workers.
  const inherited = Object.entries(process.env).filter(([name]) => !/^(?:VITEST|NODE_|TEST$|DEV$|PROD$)/.test(name));
  const child = spawn(process.execPath, args, {
    cwd,
    env: { ...Object.fromEntries(inherited), ...env },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  const [[code], ...output] = await Promise.all([once(child, 'exit'), text(child.stdout), text(child.stderr)]);
  return { code, output: output.join('') };
}
