/** Random requests about users and roles, and by users. */
import fc from 'fast-check';
import { base64, enumeration, flag, integer, message, mostly, type Tree } from './tree.ts';

/** Whose token a request has. */
export type Asker = 'nobody' | 'root' | 'alice' | 'bob' | 'stranger';

export interface UserAsk {
  readonly as: Asker;
  readonly path: string;
  readonly message: Tree;
}

export interface LogIn {
  readonly name: Asker;
  readonly password: string;
}

const texts = (...values: readonly string[]): fc.Arbitrary<Tree> => fc.constantFrom<Tree>(...values.map(base64));
const names = (...values: readonly string[]): fc.Arbitrary<Tree> => fc.constantFrom<Tree>(...values);

const user = mostly(names('alice', 'bob'), names('root', 'carol', ''));
const role = mostly(names('r1', 'r2'), names('root', 'r3', ''));
const password = names('p1', 'p2');
/** Root always has a password: etcd 3.5 and 3.6 would let it in no more, and the next sequence could not disable authentication. */
const rootWithPassword = message([10, 'name', names('root')], [10, 'password', password]);
const otherUser = mostly(names('alice', 'bob'), names('carol', ''));

/** Keys, and ends behind all of them: the permission for a range that ends before its start depends on etcd's search tree. */
const key = texts('a', 'b', 'c');
const end = mostly(texts('d', 'e'), texts('\0', ''));

const range = message([10, 'key', key], [4, 'range_end', end]);
const put = message([10, 'key', key], [3, 'prev_kv', flag], [3, 'lease', integer(7)]);
const deletion = message([10, 'key', key], [3, 'range_end', end], [3, 'prev_kv', flag]);

/** In transactions, etcd 3.4 checks neither what a put reads, nor the lease of its key. */
const plainPut = message([10, 'key', key]);

const operation = fc.oneof(
  range.map((one): Tree => ({ request_range: one })),
  plainPut.map((one): Tree => ({ request_put: one })),
  deletion.map((one): Tree => ({ request_delete_range: one })),
);
const operations = fc.array(operation, { maxLength: 2, size: 'max' });

/** Not nested: etcd 3.4 does not check what a nested transaction does. */
const txn = message(
  [4, 'compare', fc.array(message([10, 'key', key], [3, 'range_end', end]), { maxLength: 2, size: 'max' })],
  [8, 'success', operations],
  [4, 'failure', operations],
);

const grantedKey = texts('a', 'b', 'c', 'd');
const grantedEnd = mostly(texts('b', 'c', 'd', 'e'), texts('\0', 'a', ''));

const permission = message(
  [10, 'key', grantedKey],
  [5, 'range_end', grantedEnd],
  [9, 'permType', enumeration('READ', 'WRITE', 'READWRITE')],
);

const nothing = fc.constant<Tree>({});
const asker = fc.constantFrom<Asker>('root', 'root', 'alice', 'alice', 'bob', 'nobody', 'stranger');
const administrator = mostly(fc.constant<Asker>('root'), asker);

const ask = (weight: number, as: fc.Arbitrary<Asker>, of: fc.Arbitrary<Tree>, ...paths: readonly string[]) => ({
  weight,
  arbitrary: fc.record<UserAsk>({ as, path: fc.constantFrom(...paths), message: of }),
});

const noPassword = fc.constant<Tree>({ no_password: true });

export const userAsks: fc.Arbitrary<UserAsk> = fc.oneof(
  ask(10, asker, range, '/kv/range'),
  ask(10, asker, put, '/kv/put'),
  ask(6, asker, deletion, '/kv/deleterange'),
  ask(8, asker, txn, '/kv/txn'),
  ask(2, asker, fc.constant<Tree>({ ID: 7, TTL: 1000 }), '/lease/grant'),
  ask(4, asker, fc.constant<Tree>({ ID: 7, keys: true }), '/lease/revoke', '/lease/timetolive', '/lease/keepalive'),
  ask(2, asker, nothing, '/lease/leases', '/auth/status', '/maintenance/status', '/kv/compaction'),
  ask(
    3,
    administrator,
    mostly(message([10, 'name', otherUser], [8, 'password', password], [1, 'options', noPassword]), rootWithPassword),
    '/auth/user/add',
  ),
  ask(1, administrator, message([10, 'name', user]), '/auth/user/delete'),
  ask(
    2,
    administrator,
    mostly(message([10, 'name', otherUser], [9, 'password', password]), rootWithPassword),
    '/auth/user/changepw',
  ),
  ask(4, administrator, message([10, 'user', user], [10, 'role', role]), '/auth/user/grant'),
  ask(2, administrator, message([10, 'name', user], [10, 'role', role]), '/auth/user/revoke'),
  ask(3, asker, message([10, 'name', user]), '/auth/user/get'),
  ask(2, asker, nothing, '/auth/user/list', '/auth/role/list'),
  ask(2, administrator, message([10, 'name', role]), '/auth/role/add'),
  ask(1, administrator, message([10, 'role', role]), '/auth/role/delete'),
  // Never without a permission: that ends etcd 3.4, and again each time it starts.
  ask(6, administrator, message([10, 'name', role], [10, 'perm', permission]), '/auth/role/grant'),
  ask(
    3,
    administrator,
    message([10, 'role', role], [10, 'key', grantedKey], [5, 'range_end', grantedEnd]),
    '/auth/role/revoke',
  ),
  ask(3, asker, message([10, 'role', role]), '/auth/role/get'),
  ask(1, administrator, nothing, '/auth/disable'),
  ask(3, administrator, nothing, '/auth/enable'),
);

/** For a watch of all keys from one on, etcd 3.4 checks only the permission for that one. */
const closedRange = message([10, 'key', key], [4, 'range_end', texts('d', 'e', '')]);

export const watchAsks: fc.Arbitrary<UserAsk> = fc.record({
  as: asker,
  path: fc.constant('/watch'),
  message: closedRange.map((one): Tree => ({ create_request: one })),
});

export const logIns: fc.Arbitrary<LogIn> = fc.record({
  name: fc.constantFrom<Asker>('root', 'alice', 'bob', 'stranger'),
  password: mostly(fc.constantFrom('p1', 'p1', 'p2'), fc.constantFrom('', 'p3')),
});
