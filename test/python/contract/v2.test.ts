import { inject } from 'vitest';
import { V2Client } from '../../../src/v2/client.ts';
import { lockContractOnV2 } from '../../suites/lock.ts';

lockContractOnV2('V2Client', () => new V2Client({ endpoints: inject('etcd') }));
