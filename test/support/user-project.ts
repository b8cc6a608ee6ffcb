import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { fileURLToPath } from 'node:url';

const ROOT = fileURLToPath(new URL('../..', import.meta.url));

/** Runs Node in a project that has this package, and Vitest, among its own; the arguments may name files of theirs. */
export async function runInUserProject(
  files: Readonly<Record<string, string>>,
  args: readonly string[],
): Promise<{ code: number | null; output: string }> {
  const dir = mkdtempSync(join(tmpdir(), 'etcd-v2-lock-user-'));
  try {
    mkdirSync(join(dir, 'node_modules'));
    symlinkSync(ROOT, join(dir, 'node_modules/etcd-v2-lock'), 'dir');
    symlinkSync(join(ROOT, 'node_modules/vitest'), join(dir, 'node_modules/vitest'), 'dir');
    for (const [name, content] of Object.entries({ 'package.json': '{"type":"module"}', ...files }))
      writeFileSync(join(dir, name), content);
    // As a shell of the user's would start it, not one of Vitest's workers.
    const inherited = Object.entries(process.env).filter(([name]) => !/^(?:VITEST|NODE_|TEST$|DEV$|PROD$)/.test(name));
    const env = Object.fromEntries(inherited);
    const child = spawn(process.execPath, args, { cwd: dir, env, stdio: ['ignore', 'pipe', 'pipe'] });
    const [[code], ...output] = await Promise.all([once(child, 'exit'), text(child.stdout), text(child.stderr)]);
    return { code, output: output.join('') };
  } finally {
    rmSync(dir, { recursive: true, force: true });
  }
}
