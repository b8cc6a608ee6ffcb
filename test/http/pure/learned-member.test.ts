import { expect, test } from 'vitest';
import { EtcdConnectionFailed } from '../../../src/errors.ts';
import { Cluster } from '../../../src/http/cluster.ts';
import type { Endpoint } from '../../../src/http/endpoint.ts';
import { checkHttpOptions } from '../../../src/http/options.ts';

const learned = { url: 'http://b:2379', clusterId: 'own' } as Endpoint;

test.each([
  ['of another cluster is refused, and counts as not carried out', 'another', false],
  ['of its cluster counts', 'own', true],
  ['without a cluster id counts, such as that to /version', undefined, true],
])('an answer of a learned member %s', (_, id, isGood) => {
  const cluster = new Cluster(checkHttpOptions({}, '/v2'));
  const check = () => cluster.checkId(id, learned);
  if (isGood) expect(check).not.toThrow();
  else expect(check).toThrow(EtcdConnectionFailed);
});
