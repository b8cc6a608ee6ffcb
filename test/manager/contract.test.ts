import { inject } from 'vitest';
import { EtcdClient } from '../../src/v2/client.ts';
import { managerContractOnV2 } from '../suites/manager.ts';

managerContractOnV2('EtcdClient', () => new EtcdClient({ endpoints: inject('etcd') }));
