import { inject } from 'vitest';
import { lockContract } from '../../suites/lock.ts';
import { v3StoreClient } from '../../suites/stores/v3-store-client.ts';

lockContract('etcd v3', () => v3StoreClient(inject('etcd')));
