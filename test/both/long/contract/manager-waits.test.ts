import { inject } from 'vitest';
import { managerContract } from '../../../suites/manager.ts';
import { bothStoreClient } from '../../../suites/stores/both-store-client.ts';

managerContract('both APIs, seen on etcd v2', () => bothStoreClient(inject('etcd'), 'v2'), 'waits');
