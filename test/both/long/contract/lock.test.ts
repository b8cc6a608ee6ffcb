import { inject } from 'vitest';
import { lockContract } from '../../../suites/lock.ts';
import { bothStoreClient } from '../../../suites/stores/both-store-client.ts';

lockContract('both APIs, seen on etcd v2', () => bothStoreClient(inject('etcd'), 'v2'));
lockContract('both APIs, seen on etcd v3', () => bothStoreClient(inject('etcd'), 'v3'));
