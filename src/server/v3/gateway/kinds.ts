/** The fields of etcd's messages, in its order. */
import { PERMISSION_TYPES } from '../auth/permissions.ts';
import type * as api from '../messages.ts';
import { SORT_ORDERS, SORT_TARGETS } from '../store/range.ts';
import { COMPARE_RESULTS, COMPARE_TARGETS } from '../store/transaction.ts';
import type { Field, Fields, Kind } from './fields.ts';

const list = (of: Field): Field => ({ list: of });
const of = <T>(kind: () => Kind<T>): Field => ({ message: kind as () => Fields });
const enumeration = (name: string, names: readonly string[]): Field => ({ enumeration: name, names });
const oneOf = (group: string, field: Field): Field => ({ oneOf: `etcdserverpb.${group}`, field });

export const EMPTY: Kind<object> = {};

const HEADER: Kind<api.ResponseHeader> = {
  cluster_id: 'uint64',
  member_id: 'uint64',
  revision: 'int64',
  raft_term: 'uint64',
};
const header = of(() => HEADER);

/** An answer with nothing but a header. */
export const ONLY_HEADER: Kind<{ header: api.ResponseHeader }> = { header };

const KEY_VALUE: Kind<api.KeyValue> = {
  key: 'bytes',
  create_revision: 'int64',
  mod_revision: 'int64',
  version: 'int64',
  value: 'bytes',
  lease: 'int64',
};
const keyValue = of(() => KEY_VALUE);

export const RANGE_REQUEST: Kind<api.RangeRequest> = {
  key: 'bytes',
  range_end: 'bytes',
  limit: 'int64',
  revision: 'int64',
  sort_order: enumeration('etcdserverpb.RangeRequest_SortOrder', SORT_ORDERS),
  sort_target: enumeration('etcdserverpb.RangeRequest_SortTarget', SORT_TARGETS),
  serializable: 'bool',
  keys_only: 'bool',
  count_only: 'bool',
  min_mod_revision: 'int64',
  max_mod_revision: 'int64',
  min_create_revision: 'int64',
  max_create_revision: 'int64',
};

export const RANGE_RESPONSE: Kind<api.RangeResponse> = { header, kvs: list(keyValue), more: 'bool', count: 'int64' };

export const PUT_REQUEST: Kind<api.PutRequest> = {
  key: 'bytes',
  value: 'bytes',
  lease: 'int64',
  prev_kv: 'bool',
  ignore_value: 'bool',
  ignore_lease: 'bool',
};

export const PUT_RESPONSE: Kind<api.PutResponse> = { header, prev_kv: keyValue };

export const DELETE_RANGE_REQUEST: Kind<api.DeleteRangeRequest> = { key: 'bytes', range_end: 'bytes', prev_kv: 'bool' };

export const DELETE_RANGE_RESPONSE: Kind<api.DeleteRangeResponse> = {
  header,
  deleted: 'int64',
  prev_kvs: list(keyValue),
};

const COMPARE: Kind<api.Compare> = {
  result: enumeration('etcdserverpb.Compare_CompareResult', COMPARE_RESULTS),
  target: enumeration('etcdserverpb.Compare_CompareTarget', COMPARE_TARGETS),
  key: 'bytes',
  version: oneOf('Compare.target_union', 'int64'),
  create_revision: oneOf('Compare.target_union', 'int64'),
  mod_revision: oneOf('Compare.target_union', 'int64'),
  value: oneOf('Compare.target_union', 'bytes'),
  lease: oneOf('Compare.target_union', 'int64'),
  range_end: 'bytes',
};

const REQUEST_OP: Kind<api.RequestOp> = {
  request_range: oneOf(
    'RequestOp.request',
    of(() => RANGE_REQUEST),
  ),
  request_put: oneOf(
    'RequestOp.request',
    of(() => PUT_REQUEST),
  ),
  request_delete_range: oneOf(
    'RequestOp.request',
    of(() => DELETE_RANGE_REQUEST),
  ),
  request_txn: oneOf(
    'RequestOp.request',
    of(() => TXN_REQUEST),
  ),
};
const operations = list(of(() => REQUEST_OP));

export const TXN_REQUEST: Kind<api.TxnRequest> = {
  compare: list(of(() => COMPARE)),
  success: operations,
  failure: operations,
};

const RESPONSE_OP: Kind<api.ResponseOp> = {
  response_range: of(() => RANGE_RESPONSE),
  response_put: of(() => PUT_RESPONSE),
  response_delete_range: of(() => DELETE_RANGE_RESPONSE),
  response_txn: of(() => TXN_RESPONSE),
};

export const TXN_RESPONSE: Kind<api.TxnResponse> = {
  header,
  succeeded: 'bool',
  responses: list(of(() => RESPONSE_OP)),
};

export const COMPACTION_REQUEST: Kind<api.CompactionRequest> = { revision: 'int64', physical: 'bool' };

export const LEASE_REQUEST: Kind<api.LeaseRequest> = { ID: 'int64' };

export const LEASE_GRANT_REQUEST: Kind<api.LeaseGrantRequest> = { TTL: 'int64', ID: 'int64' };

export const LEASE_RESPONSE: Kind<api.LeaseResponse> = { header, ID: 'int64', TTL: 'int64' };

export const LEASE_TIME_TO_LIVE_REQUEST: Kind<api.LeaseTimeToLiveRequest> = { ID: 'int64', keys: 'bool' };

export const LEASE_TIME_TO_LIVE_RESPONSE: Kind<api.LeaseTimeToLiveResponse> = {
  header,
  ID: 'int64',
  TTL: 'int64',
  grantedTTL: 'int64',
  keys: list('bytes'),
};

export const LEASES_RESPONSE: Kind<api.LeasesResponse> = { header, leases: list(of(() => LEASE_REQUEST)) };

const WATCH_CREATE_REQUEST: Kind<api.WatchCreateRequest> = {
  key: 'bytes',
  range_end: 'bytes',
  start_revision: 'int64',
  progress_notify: 'bool',
  filters: list(enumeration('etcdserverpb.WatchCreateRequest_FilterType', ['NOPUT', 'NODELETE'])),
  prev_kv: 'bool',
  watch_id: 'int64',
  fragment: 'bool',
};

export const WATCH_REQUEST: Kind<api.WatchRequest> = {
  create_request: oneOf(
    'WatchRequest.request_union',
    of(() => WATCH_CREATE_REQUEST),
  ),
  cancel_request: oneOf(
    'WatchRequest.request_union',
    of((): Kind<{ watch_id: bigint }> => ({ watch_id: 'int64' })),
  ),
  progress_request: oneOf(
    'WatchRequest.request_union',
    of(() => EMPTY),
  ),
};

const EVENT: Kind<api.Event> = {
  type: enumeration('mvccpb.Event_EventType', ['PUT', 'DELETE']),
  kv: keyValue,
  prev_kv: keyValue,
};

export const WATCH_RESPONSE: Kind<api.WatchResponse> = {
  header,
  watch_id: 'int64',
  created: 'bool',
  canceled: 'bool',
  compact_revision: 'int64',
  cancel_reason: 'string',
  fragment: 'bool',
  events: list(of(() => EVENT)),
};

export const NAME_AND_PASSWORD: Kind<api.NameAndPassword> = { name: 'string', password: 'string' };

export const USER_ADD_REQUEST: Kind<api.UserAddRequest> = {
  ...NAME_AND_PASSWORD,
  options: of((): Kind<{ no_password: boolean }> => ({ no_password: 'bool' })),
};

export const NAMED: Kind<api.Named> = { name: 'string' };

export const USER_AND_ROLE: Kind<api.UserAndRole> = { user: 'string', role: 'string' };

export const USER_REVOKE_ROLE_REQUEST: Kind<api.UserRevokeRoleRequest> = { name: 'string', role: 'string' };

export const ROLE: Kind<{ role: string }> = { role: 'string' };

const PERMISSION: Kind<api.Permission> = {
  permType: enumeration('authpb.Permission_Type', PERMISSION_TYPES),
  key: 'bytes',
  range_end: 'bytes',
};

export const ROLE_GRANT_PERMISSION_REQUEST: Kind<api.RoleGrantPermissionRequest> = {
  name: 'string',
  perm: of(() => PERMISSION),
};

export const ROLE_REVOKE_PERMISSION_REQUEST: Kind<api.RoleRevokePermissionRequest> = {
  role: 'string',
  key: 'bytes',
  range_end: 'bytes',
};

export const AUTHENTICATE_RESPONSE: Kind<api.AuthenticateResponse> = { header, token: 'string' };

export const ROLES_RESPONSE: Kind<api.RolesResponse> = { header, roles: list('string') };

export const USERS_RESPONSE: Kind<api.UsersResponse> = { header, users: list('string') };

export const ROLE_RESPONSE: Kind<api.RoleResponse> = { header, perm: list(of(() => PERMISSION)) };

export const AUTH_STATUS_RESPONSE: Kind<api.AuthStatusResponse> = { header, enabled: 'bool', authRevision: 'uint64' };

export const STATUS_RESPONSE: Kind<api.StatusResponse> = {
  header,
  version: 'string',
  dbSize: 'int64',
  leader: 'uint64',
  raftIndex: 'uint64',
  raftTerm: 'uint64',
  raftAppliedIndex: 'uint64',
  dbSizeInUse: 'int64',
  storageVersion: 'string',
  dbSizeQuota: 'int64',
  downgradeInfo: of(() => EMPTY),
};

const MEMBER: Kind<api.Member> = {
  ID: 'uint64',
  name: 'string',
  peerURLs: list('string'),
  clientURLs: list('string'),
};

export const MEMBER_LIST_RESPONSE: Kind<api.MemberListResponse> = { header, members: list(of(() => MEMBER)) };
