import { mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

// Below the kernel's range for outgoing connections, so that the port of a stopped server stays free for its restart.
const lowest = 15_000;
const highest = 30_000;

/** One file per port reserved by a test process, so that no other test takes the port of a stopped server. */
const taken = join(tmpdir(), 'etcd-v2-lock-ports');
const mine = new Set<string>();
process.on('exit', () => {
  for (const file of mine) rmSync(file, { force: true });
});

/**
 * Returns distinct loopback ports that were free when checked, reserved from other tests until this process exits. Another
 * program may still take one: be ready to call again.
 */
export async function freePorts(count: number): Promise<number[]> {
  const ports = new Set<number>();
  while (ports.size < count) {
    const port = lowest + Math.floor(Math.random() * (highest - lowest));
    if (!ports.has(port) && reserve(port) && (await isFree(port))) ports.add(port);
  }
  return [...ports];
}

function isFree(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const server = createServer();
    server.once('error', () => resolve(false));
    server.listen(port, '127.0.0.1', () => server.close(() => resolve(true)));
  });
}

function reserve(port: number): boolean {
  mkdirSync(taken, { recursive: true });
  const file = join(taken, String(port));
  try {
    writeFileSync(file, String(process.pid), { flag: 'wx' });
  } catch {
    if (isRunning(ownerOf(file))) return false;
    rmSync(file, { force: true }); // the next caller that picks this port can reserve it
    return false;
  }
  mine.add(file);
  return true;
}

function ownerOf(file: string): number {
  try {
    return Number(readFileSync(file, 'utf8'));
  } catch {
    return 0;
  }
}

function isRunning(pid: number): boolean {
  try {
    return pid === 0 || process.kill(pid, 0);
  } catch {
    return false;
  }
}
