import { inject } from 'vitest';
import { EtcdClient } from '../../src/v2/client.ts';
import { managerContract } from '../suites/manager.ts';

managerContract('EtcdClient', () => new EtcdClient({ endpoints: inject('etcd') }));
