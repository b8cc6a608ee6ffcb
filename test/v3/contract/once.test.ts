import { inject } from 'vitest';
import { onceContract } from '../../suites/once.ts';
import { v3StoreClient } from '../../suites/stores/v3-store-client.ts';

onceContract('etcd v3', () => v3StoreClient(inject('etcd')));
