import { execFile } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { delimiter, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';

const MAIN = fileURLToPath(new URL('../../dist/cli/main.js', import.meta.url));
const execute = promisify(execFile);

/**
 * Runs a shell script with `etcd-v2-lock` on its PATH, and with an `npx` that finds it there. Resolves to the output of the script, and rejects
 * if a command fails.
 */
export async function runInShell(
  script: string,
  env: Readonly<Record<string, string>>,
): Promise<{ stdout: string; stderr: string }> {
  const dir = mkdtempSync(join(tmpdir(), 'etcd-v2-lock-shell-'));
  try {
    writeFileSync(join(dir, 'etcd-v2-lock'), `#!/bin/sh\nexec '${process.execPath}' '${MAIN}' "$@"\n`, { mode: 0o755 });
    writeFileSync(join(dir, 'npx'), '#!/bin/sh\nexec "$@"\n', { mode: 0o755 });
    const path = [dir, process.env['PATH']].join(delimiter);
    return await execute('sh', ['-euc', script], { cwd: dir, env: { ...process.env, ...env, PATH: path } });
  } finally {
    rmSync(dir, { recursive: true, force: true });
  }
}
