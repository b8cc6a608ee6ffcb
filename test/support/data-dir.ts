import { mkdtempSync, readdirSync, rmSync, statfsSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

const memory = '/dev/shm';
const prefix = 'etcd-v2-lock-';
// Each etcd member preallocates two 64 MB log segments, and a container's /dev/shm may have only 64 MB in total.
const wantedBytes = 2 * 1024 ** 3;

/** Creates a directory for one etcd member: in memory if there is enough, because etcd waits for every fsync. */
export function makeDataDir(): string {
  return mkdtempSync(join(hasRoom(memory) ? memory : tmpdir(), `${prefix}${process.pid}-`));
}

export function removeDataDir(directory: string): void {
  rmSync(directory, { recursive: true, force: true, maxRetries: 3 });
}

/** Removes the directories of processes that were killed before they could remove them. */
export function sweepDataDirs(): void {
  for (const parent of [memory, tmpdir()]) {
    for (const name of entries(parent)) {
      const owner = new RegExp(`^${prefix}(\\d+)-`).exec(name)?.[1];
      if (owner !== undefined && !isAlive(Number(owner))) removeDataDir(join(parent, name));
    }
  }
}

function entries(directory: string): string[] {
  try {
    return readdirSync(directory);
  } catch {
    return [];
  }
}

function isAlive(pid: number): boolean {
  try {
    return process.kill(pid, 0);
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'EPERM';
  }
}

function hasRoom(directory: string): boolean {
  try {
    const { bavail, bsize } = statfsSync(directory);
    return bavail * bsize >= wantedBytes;
  } catch {
    return false;
  }
}
