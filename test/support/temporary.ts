import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { onTestFinished } from 'vitest';

/** Creates a directory; the end of the test removes it. */
export function temporaryDirectory(): string {
  const directory = mkdtempSync(join(tmpdir(), 'etcd-v2-lock-test-'));
  onTestFinished(() => rmSync(directory, { recursive: true, force: true }));
  return directory;
}
