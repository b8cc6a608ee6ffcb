import { execFile } from 'node:child_process';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { delimiter, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';

const ROOT = fileURLToPath(new URL('../..', import.meta.url));
const execute = promisify(execFile);

/** The package as a user gets it, packed and installed in an empty project, and several versions of Node. */
export interface Installed {
  /** The user's project. */
  readonly dir: string;
  readonly tarball: string;
  /** Paths of the files in the tarball. */
  readonly files: readonly string[];
  /** Directory and environment to run a user's command with that version of Node. */
  on(version: string): { readonly cwd: string; readonly env: NodeJS.ProcessEnv };
  remove(): void;
}

/**
 * Packs the built package, and installs it with its dependencies from npm's registry.
 * @param versions versions of Node: numbers or ranges as npm accepts them
 * @param packages what the user's project has besides
 */
export async function installPackage(versions: readonly string[], packages: readonly string[]): Promise<Installed> {
  const dir = mkdtempSync(join(tmpdir(), 'etcd-v2-lock-installed-'));
  const [project, nodes] = [join(dir, 'project'), join(dir, 'nodes')];
  const { filename, files } = await pack(dir);
  const tarball = join(dir, filename);
  await install(project, [tarball, ...packages]);
  // The package `node` only selects one of the packages per platform.
  const platform = `${process.platform}-${process.arch}`;
  await install(
    nodes,
    versions.map((version) => `${nameOf(version)}@npm:node-${platform}@${version}`),
  );
  return {
    dir: project,
    tarball,
    files: files.map(({ path }) => path),
    on: (version) => {
      const path = [join(nodes, 'node_modules', nameOf(version), 'bin'), process.env['PATH']].join(delimiter);
      return { cwd: project, env: { ...environment(), PATH: path } };
    },
    remove: () => rmSync(dir, { recursive: true, force: true }),
  };
}

const nameOf = (version: string): string => `node-${version}`;

async function pack(into: string): Promise<{ filename: string; files: { path: string }[] }> {
  // The package's scripts would build again while other tests use the build.
  const args = ['pack', '--json', '--ignore-scripts', '--pack-destination', into];
  const { stdout } = await execute('npm', args, { cwd: ROOT, env: environment() });
  return JSON.parse(stdout)[0];
}

async function install(project: string, packages: readonly string[]): Promise<void> {
  mkdirSync(project);
  writeFileSync(join(project, 'package.json'), '{}');
  const args = ['install', '--no-audit', '--no-fund', '--prefer-offline', ...packages];
  await execute('npm', args, { cwd: project, env: environment() });
}

/** The environment of a user's shell: without the variables of npm, Vitest and etcd. */
function environment(): NodeJS.ProcessEnv {
  const ours =
    /^(?:npm_(?:package|lifecycle)_|npm_config_local_prefix$|npm_command$|VITEST|NODE_(?:ENV|OPTIONS)$|ETCD)/;
  return Object.fromEntries(Object.entries(process.env).filter(([name]) => !ours.test(name)));
}
