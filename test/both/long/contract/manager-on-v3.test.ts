import { inject } from 'vitest';
import { available } from '../../../suites/manager/available.ts';
import { election } from '../../../suites/manager/election.ts';
import { identities } from '../../../suites/manager/identity.ts';
import { loss } from '../../../suites/manager/loss.ts';
import { modes } from '../../../suites/manager/modes.ts';
import { waiting } from '../../../suites/manager/waiting.ts';
import { managerContract } from '../../../suites/manager.ts';
import { bothStoreClient } from '../../../suites/stores/both-store-client.ts';

// What another client does on v3 matters to these.
managerContract('both APIs, seen on etcd v3', () => bothStoreClient(inject('etcd'), 'v3'), [
  available,
  waiting,
  loss,
  modes,
  identities,
  election,
]);
