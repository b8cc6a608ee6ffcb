import { EmbeddedEtcd } from '../../../src/server/index.ts';
import { startEtcd } from '../../support/etcd.ts';
import { Asked } from './exchange.ts';

/** The two servers to compare. They have no other clients, so their indexes stay the same. */
export interface Both {
  readonly real: Asked;
  readonly embedded: Asked;
  close(): Promise<void>;
}

export async function openBoth(): Promise<Both> {
  const [etcd, server] = await Promise.all([startEtcd(), EmbeddedEtcd.start()]);
  const [real, embedded] = [new Asked(etcd.url), new Asked(server.url)];
  const close = async () => {
    real.close();
    embedded.close();
    await Promise.all([etcd.stop(), server.stop()]);
  };
  await level({ real, embedded });
  // The same events on both, for requests that go a few events back in the history.
  for (let i = 0; i < 10; i += 1) await Promise.all([write(real), write(embedded)]);
  return { real, embedded, close };
}

/** Brings both servers to the same index, which may differ after a failed sequence. Returns the index. */
export async function level({ real, embedded }: Omit<Both, 'close'>): Promise<number> {
  const indexes = { real: await write(real), embedded: await write(embedded) };
  while (indexes.real < indexes.embedded) indexes.real = await write(real);
  while (indexes.embedded < indexes.real) indexes.embedded = await write(embedded);
  return indexes.real;
}

async function write(server: Asked): Promise<number> {
  const answer = await server.ask({ method: 'PUT', target: '/v2/keys/filler', form: '' });
  await answer.whole();
  return Number(answer.headers['x-etcd-index']);
}
