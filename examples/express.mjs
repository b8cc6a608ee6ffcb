// Writes at most one report of a customer at a time, in all instances of the service. A client that goes away no longer waits.
import { setTimeout as sleep } from 'node:timers/promises';
import { EtcdClient, EtcdLockTimeout, LockManager } from 'etcd-v2-lock';
import express from 'express';

const client = new EtcdClient({ endpoints: process.env.ETCD_ENDPOINTS?.split(',') ?? 'http://127.0.0.1:2379' });
const locks = new LockManager(client, { timeout: 2 });
const app = express();

app.post('/reports/:customer', async ({ params }, response) => {
  const gone = new AbortController();
  response.once('close', () => gone.abort());
  try {
    const token = await locks.request(`examples/reports/${params.customer}`, { signal: gone.signal }, async (held) => {
      await sleep(100); // writes the report
      held.assertHeld();
      return String(held.fencingToken); // JSON has no bigint
    });
    response.json({ token });
  } catch (error) {
    if (gone.signal.aborted) return;
    // For other errors, also if etcd cannot be reached, Express answers 500.
    if (!(error instanceof EtcdLockTimeout && error.reason === 'held')) throw error;
    response.status(409).json({ error: `the report is being written by ${error.holder?.label ?? 'another instance'}` });
  }
});

const server = app.listen(Number(process.env.PORT ?? 3000), '127.0.0.1', () => {
  console.log(`http://127.0.0.1:${server.address().port}`);
});
process.once('SIGTERM', () => {
  // In an outage, close() rejects after five seconds with the keys that it could not remove.
  server.close(() => client.close().catch((error) => console.error(error.message)));
});
