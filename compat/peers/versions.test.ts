import { expect, inject, test } from 'vitest';

test.each(['3.4', '3.5', '3.6'] as const)('the server for etcd %s is of that version', async (version) => {
  const answer = (await (await fetch(`${inject('servers')[version]}/version`)).json()) as { etcdserver: string };
  expect(answer.etcdserver).toMatch(new RegExp(`^${version}\\.\\d+$`));
});
