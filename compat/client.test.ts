import { expect, onTestFinished, test } from 'vitest';
import { EmbeddedEtcd } from '../src/server/index.ts';
import { startEtcd } from '../test/support/etcd.ts';
import { tour } from './tour.ts';

test('etcd and the embedded server answer every request of python-etcd’s Client alike', async () => {
  // Servers of our own, without other writers, so that indexes can be compared.
  const etcd = await startEtcd();
  onTestFinished(() => etcd.stop());
  const embedded = await EmbeddedEtcd.start();
  onTestFinished(() => embedded.stop());
  const [real, ours] = await Promise.all([etcd, embedded].map(({ url }) => tour(url, '/tour')));
  expect(Object.keys(real ?? {}).length).toBeGreaterThan(40);
  expect(ours).toEqual(real);
});
