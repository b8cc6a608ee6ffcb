/** The calls of the gateway that have one answer. */
import type { V3Member } from '../member.ts';
import type * as api from '../messages.ts';
import { checkRange } from '../store/range.ts';
import { checkDelete, checkPut, checkTxn } from '../store/transaction.ts';
import { admin, anyone, anyoneUntil35, byTokenSince35, type Call, call, change, write } from './call.ts';
import * as kinds from './kinds.ts';

const withHeader = <A extends { readonly header: api.ResponseHeader }>(member: V3Member, answer: A): A => ({
  ...answer,
  header: member.headerAt(answer.header.revision),
});

const revoke = write(
  kinds.LEASE_REQUEST,
  kinds.ONLY_HEADER,
  ({ ID }, { member, access }) => {
    access.endLease(ID);
    member.store.leases.revoke(ID);
    return { header: member.header };
  },
  { identify: byTokenSince35 },
);

const timeToLive = call(
  kinds.LEASE_TIME_TO_LIVE_REQUEST,
  kinds.LEASE_TIME_TO_LIVE_RESPONSE,
  ({ ID, keys }, { member, access }) => {
    if (keys && member.version !== '3.4') access.readLease(ID);
    const { header } = member;
    const status = member.store.leases.status(ID);
    if (!status) return { header, ID, TTL: -1n, grantedTTL: 0n, keys: [] };
    return { header, ID, TTL: status.left, grantedTTL: status.granted, keys: keys ? status.keys : [] };
  },
  { identify: anyoneUntil35 },
);

const leases = call(
  kinds.EMPTY,
  kinds.LEASES_RESPONSE,
  (_, { member, access }) => {
    const { ids } = member.store.leases;
    if (member.version !== '3.4') for (const id of ids) access.readLease(id);
    return { header: member.header, leases: ids.map((ID) => ({ ID })) };
  },
  { identify: anyoneUntil35 },
);

/** By path, without its prefix. */
export const CALLS: ReadonlyMap<string, Call> = new Map([
  [
    '/kv/range',
    call(
      kinds.RANGE_REQUEST,
      kinds.RANGE_RESPONSE,
      (request, { member, access }) => {
        access.read(request);
        return { header: member.header, ...member.store.range(request) };
      },
      { check: (request, { version }) => checkRange(request, version) },
    ),
  ],
  [
    '/kv/put',
    write(
      kinds.PUT_REQUEST,
      kinds.PUT_RESPONSE,
      (request, { member, access }) => {
        access.put(request);
        return withHeader(member, member.store.put(request));
      },
      { check: checkPut },
    ),
  ],
  [
    '/kv/deleterange',
    write(
      kinds.DELETE_RANGE_REQUEST,
      kinds.DELETE_RANGE_RESPONSE,
      (request, { member, access }) => {
        access.delete(request);
        return withHeader(member, member.store.deleteRange(request));
      },
      { check: checkDelete },
    ),
  ],
  [
    '/kv/txn',
    write(
      kinds.TXN_REQUEST,
      kinds.TXN_RESPONSE,
      (request, { member, access }) => {
        access.txn(request);
        return withHeader(member, member.store.txn(request));
      },
      { check: (request, { version }) => checkTxn(request, version) },
    ),
  ],
  [
    '/kv/compaction',
    write(kinds.COMPACTION_REQUEST, kinds.ONLY_HEADER, (request, { member, access }) => {
      if (member.version !== '3.4') access.admin();
      member.store.compact(request);
      return { header: member.header };
    }),
  ],
  [
    '/lease/grant',
    write(
      kinds.LEASE_GRANT_REQUEST,
      kinds.LEASE_RESPONSE,
      (request, { member }) => {
        const { id, ttl } = member.store.leases.grant(request.ID, request.TTL);
        return { header: member.header, ID: id, TTL: ttl };
      },
      { identify: byTokenSince35 },
    ),
  ],
  ['/lease/revoke', revoke],
  ['/kv/lease/revoke', revoke],
  ['/lease/timetolive', timeToLive],
  ['/kv/lease/timetolive', timeToLive],
  ['/lease/leases', leases],
  ['/kv/lease/leases', leases],
  [
    '/cluster/member/list',
    call(kinds.EMPTY, kinds.MEMBER_LIST_RESPONSE, (_, { member }) => member.members, { identify: anyone }),
  ],
  [
    '/maintenance/status',
    call(kinds.EMPTY, kinds.STATUS_RESPONSE, (_, { member }) => member.status, { identify: anyoneUntil35 }),
  ],
  ['/auth/enable', change(kinds.EMPTY, (_, { auth }) => auth.enable())],
  ['/auth/disable', change(kinds.EMPTY, (_, { auth }) => auth.disable())],
  [
    '/auth/authenticate',
    call(
      kinds.NAME_AND_PASSWORD,
      kinds.AUTHENTICATE_RESPONSE,
      (request, { member }) => ({
        header: member.header,
        token: member.auth.authenticate(request, member.store.revision),
      }),
      { identify: anyone },
    ),
  ],
  ['/auth/user/add', change(kinds.USER_ADD_REQUEST, (request, { auth }) => auth.addUser(request))],
  ['/auth/user/delete', change(kinds.NAMED, ({ name }, { auth }) => auth.deleteUser(name))],
  ['/auth/user/changepw', change(kinds.NAME_AND_PASSWORD, (request, { auth }) => auth.changePassword(request))],
  ['/auth/user/grant', change(kinds.USER_AND_ROLE, ({ user, role }, { auth }) => auth.grantRole(user, role))],
  [
    '/auth/user/revoke',
    change(kinds.USER_REVOKE_ROLE_REQUEST, ({ name, role }, { auth }) => auth.revokeRole(name, role)),
  ],
  [
    '/auth/user/get',
    call(kinds.NAMED, kinds.ROLES_RESPONSE, ({ name }, { member, access }) => {
      access.admin((user) => user === name);
      return { header: member.header, roles: member.auth.rolesOf(name) };
    }),
  ],
  [
    '/auth/user/list',
    admin(kinds.EMPTY, kinds.USERS_RESPONSE, (_, { header, auth }) => ({ header, users: auth.users })),
  ],
  ['/auth/role/add', change(kinds.NAMED, ({ name }, { auth }) => auth.addRole(name))],
  ['/auth/role/delete', change(kinds.ROLE, ({ role }, { auth }) => auth.deleteRole(role))],
  [
    '/auth/role/grant',
    change(kinds.ROLE_GRANT_PERMISSION_REQUEST, ({ name, perm }, { auth }) => auth.grantPermission(name, perm)),
  ],
  [
    '/auth/role/revoke',
    change(kinds.ROLE_REVOKE_PERMISSION_REQUEST, (request, { auth }) => auth.revokePermission(request.role, request)),
  ],
  [
    '/auth/role/get',
    call(kinds.ROLE, kinds.ROLE_RESPONSE, ({ role }, { member, access }) => {
      const { auth, header } = member;
      access.admin((user) => auth.hasRole(user, role));
      return { header, perm: auth.shownPermissionsOf(role) };
    }),
  ],
  [
    '/auth/role/list',
    admin(kinds.EMPTY, kinds.ROLES_RESPONSE, (_, { header, auth }) => ({ header, roles: auth.roles })),
  ],
]);

/** The call that came with etcd 3.5. */
export const AUTH_STATUS = admin(kinds.EMPTY, kinds.AUTH_STATUS_RESPONSE, (_, { header, auth }) => ({
  header,
  enabled: auth.isEnabled,
  authRevision: auth.revision,
}));
