// Converts at most two files at a time, in all instances of the service. Further requests get status 503 with Retry-After.
import { setTimeout as sleep } from 'node:timers/promises';
import { EtcdClient, LockManager } from 'etcd-v2-lock';
import Fastify from 'fastify';

const client = new EtcdClient({ endpoints: process.env.ETCD_ENDPOINTS?.split(',') ?? 'http://127.0.0.1:2379' });
const locks = new LockManager(client);
const app = Fastify();

app.post('/convert/:file', async (request, reply) => {
  const { file } = /** @type {{ file: string }} */ (request.params);
  const converted = await locks.request('examples/conversions', { limit: 2, ifAvailable: true }, async (held) => {
    if (held === null) return null;
    await sleep(300, undefined, { signal: held.signal }); // converts the file
    return file;
  });
  if (converted !== null) return { converted };
  return reply.code(503).header('retry-after', '1').send({ error: 'two files are being converted' });
});

// In an outage, close() rejects after five seconds with the keys that it could not remove.
app.addHook('onClose', () => client.close().catch((error) => console.error(error.message)));
console.log(await app.listen({ port: Number(process.env.PORT ?? 3000), host: '127.0.0.1' }));
process.once('SIGTERM', () => app.close());
