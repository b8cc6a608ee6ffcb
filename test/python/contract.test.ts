import { inject } from 'vitest';
import { EtcdClient } from '../../src/v2/client.ts';
import { lockContractOnV2 } from '../suites/lock.ts';

lockContractOnV2('EtcdClient', () => new EtcdClient({ endpoints: inject('etcd') }));
