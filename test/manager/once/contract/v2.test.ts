import { inject } from 'vitest';
import { V2Client } from '../../../../src/v2/client.ts';
import { onceContract } from '../../../suites/once.ts';
import { v2StoreClient } from '../../../suites/stores/v2-store-client.ts';

onceContract('V2Client', () => v2StoreClient(new V2Client({ endpoints: inject('etcd') })));
