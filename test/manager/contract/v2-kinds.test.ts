import { inject } from 'vitest';
import { V2Client } from '../../../src/v2/client.ts';
import { managerContractOnV2 } from '../../suites/manager.ts';

managerContractOnV2('V2Client', 'kinds', () => new V2Client({ endpoints: inject('etcd') }));
