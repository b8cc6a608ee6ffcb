import { inject } from 'vitest';
import { managerContractOnV3 } from '../../suites/manager.ts';
import { v3StoreClient } from '../../suites/stores/v3-store-client.ts';

managerContractOnV3('etcd v3', 'waits', () => v3StoreClient(inject('etcd')));
