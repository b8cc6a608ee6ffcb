import { createServer } from 'node:net';

// Below the range the kernel hands out to outgoing connections: a stopped server finds its port free when it restarts.
const lowest = 15_000;
const highest = 30_000;

/** Distinct loopback ports that were free a moment ago. Another process may take one meanwhile: be ready to ask again. */
export async function freePorts(count: number): Promise<number[]> {
  const ports = new Set<number>();
  while (ports.size < count) {
    const port = lowest + Math.floor(Math.random() * (highest - lowest));
    if (!ports.has(port) && (await isFree(port))) ports.add(port);
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
