import { inject } from 'vitest';
import { managerContract } from '../../test/suites/manager.ts';
import { v3StoreClient } from '../../test/suites/stores/v3-store-client.ts';

managerContract('etcd 3.6', () => v3StoreClient(inject('servers')['3.6']));
