import { inject } from 'vitest';
import { lockContract } from '../../test/suites/lock.ts';
import { v3StoreClient } from '../../test/suites/stores/v3-store-client.ts';

for (const version of ['3.5', '3.6'] as const)
  lockContract(`etcd ${version}`, () => v3StoreClient(inject('servers')[version]));
