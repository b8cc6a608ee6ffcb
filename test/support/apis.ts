import { inject } from 'vitest';
import type { EtcdApi } from '../../src/client.ts';

/** The APIs of the etcd that a test file starts or shares: on the versions that `npm run peers` builds, only that of v3. */
export const APIS: readonly EtcdApi[] = inject('etcdVersion') === undefined ? ['v2', 'v3', 'both'] : ['v3'];

/** For tests whose outcome does not depend on the API. */
export const ANY_API: EtcdApi = APIS.includes('v2') ? 'v2' : 'v3';

/** For tests that need each API once. */
export const EVERY_API: EtcdApi = APIS.includes('both') ? 'both' : 'v3';
