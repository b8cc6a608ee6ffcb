import { expect, inject, onTestFinished, test } from 'vitest';
import { V3Client } from '../../src/v3/client.ts';
import { base64, gateway } from '../support/gateway.ts';
import { freshName } from '../support/locks.ts';

let last = 2n ** 61n + BigInt(Date.now()) * 1000n;

/** Creates a lease of another client, and removes it after the test. */
async function useLease(): Promise<string> {
  last += 1n;
  const ID = String(last);
  await gateway('/lease/grant', { ID, TTL: '60' });
  onTestFinished(async () => {
    await gateway('/lease/revoke', { ID });
  });
  return ID;
}

function useRequests() {
  const client = new V3Client({ endpoints: inject('etcd') });
  onTestFinished(() => client.close());
  return client.requests.leases;
}

test('a lease that a proxy has created by an earlier copy of the request counts as created', async () => {
  const id = await useLease();
  expect(await useRequests().grant(id, 60, {})).toMatchObject({ granted: 60 });
});

test('a lease with the keys of others is not taken over', async () => {
  const id = await useLease();
  await gateway('/kv/put', { key: base64(`/${freshName()}`), lease: id });
  await expect(useRequests().grant(id, 60, {})).rejects.toThrow('lease already exists');
});
