import { inject } from 'vitest';
import { EtcdClient } from '../../src/v2/client.ts';
import { lockContract } from '../suites/lock.ts';

lockContract('EtcdClient', () => new EtcdClient({ endpoints: inject('etcd') }));
