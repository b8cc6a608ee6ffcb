// Makes tests that start servers of their own start those of the project's version.
import { inject } from 'vitest';
import { startByDefault } from '../../../test/support/etcd.ts';
import { built } from '../built.ts';

startByDefault(built(inject('etcdVersion')));
