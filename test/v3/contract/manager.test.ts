import { inject } from 'vitest';
import { managerContract, ON_V3 } from '../../suites/manager.ts';
import { v3StoreClient } from '../../suites/stores/v3-store-client.ts';

managerContract('etcd v3', () => v3StoreClient(inject('etcd')), ON_V3);
