/** Random requests with one answer each. */
import fc from 'fast-check';
import * as messages from './messages.ts';
import { mostly, type Tree } from './tree.ts';

/** A request of a random sequence, before it is encoded. */
export interface Ask {
  /** Path below the prefix. */
  readonly path: string;
  readonly prefix: string;
  readonly message: Tree;
  readonly camelCase: boolean;
}

const prefix = mostly(fc.constant('/v3'), fc.constant('/v3beta'));
const camelCase = mostly(fc.constant(false), fc.constant(true));

const ask = (weight: number, message: fc.Arbitrary<Tree>, ...paths: readonly string[]) => ({
  weight,
  arbitrary: fc.record<Ask>({ path: fc.constantFrom(...paths), prefix, message, camelCase }),
});

const nothing = fc.constant<Tree>({});

export const asks: fc.Arbitrary<Ask> = fc.oneof(
  ask(24, messages.range, '/kv/range'),
  ask(12, messages.put, '/kv/put'),
  ask(14, messages.plainPut, '/kv/put'),
  ask(7, messages.deleteRange, '/kv/deleterange'),
  ask(26, messages.txn, '/kv/txn'),
  ask(1, messages.longTxn, '/kv/txn'),
  ask(3, messages.compaction, '/kv/compaction'),
  ask(5, messages.grant, '/lease/grant'),
  ask(2, messages.leaseId, '/lease/revoke', '/kv/lease/revoke'),
  ask(3, messages.leaseId, '/lease/keepalive'),
  ask(4, messages.timeToLive, '/lease/timetolive', '/kv/lease/timetolive'),
  ask(1, nothing, '/lease/leases', '/kv/lease/leases'),
  ask(1, nothing, '/auth/user/list', '/auth/role/list', '/auth/status', '/kv/nothing', '/'),
);
