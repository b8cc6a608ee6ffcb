/** The messages of etcd's v3 API that this server knows. Their names and fields are etcd's own. A field that is left out is zero. */
import type { Bytes, KeyRange } from './bytes.ts';

export interface KeyValue {
  readonly key: Bytes;
  readonly create_revision: bigint;
  readonly mod_revision: bigint;
  readonly version: bigint;
  readonly value: Bytes;
  /** Id of its lease; 0: none. */
  readonly lease: bigint;
}

export interface ResponseHeader {
  readonly cluster_id?: bigint;
  readonly member_id?: bigint;
  readonly revision?: bigint;
  readonly raft_term?: bigint;
}

export interface RangeRequest extends KeyRange {
  readonly limit: bigint;
  readonly revision: bigint;
  readonly sort_order: number;
  readonly sort_target: number;
  readonly serializable: boolean;
  readonly keys_only: boolean;
  readonly count_only: boolean;
  readonly min_mod_revision: bigint;
  readonly max_mod_revision: bigint;
  readonly min_create_revision: bigint;
  readonly max_create_revision: bigint;
}

export interface RangeResponse {
  readonly header: ResponseHeader;
  readonly kvs: readonly KeyValue[];
  readonly more: boolean;
  readonly count: bigint;
}

export interface PutRequest {
  readonly key: Bytes;
  readonly value: Bytes;
  readonly lease: bigint;
  readonly prev_kv: boolean;
  readonly ignore_value: boolean;
  readonly ignore_lease: boolean;
}

export interface PutResponse {
  readonly header: ResponseHeader;
  readonly prev_kv: KeyValue | undefined;
}

export interface DeleteRangeRequest extends KeyRange {
  readonly prev_kv: boolean;
}

export interface DeleteRangeResponse {
  readonly header: ResponseHeader;
  readonly deleted: bigint;
  readonly prev_kvs: readonly KeyValue[];
}

export interface Compare extends KeyRange {
  readonly result: number;
  readonly target: number;
  readonly version: bigint | undefined;
  readonly create_revision: bigint | undefined;
  readonly mod_revision: bigint | undefined;
  readonly value: Bytes | undefined;
  readonly lease: bigint | undefined;
}

/** One of the four. */
export interface RequestOp {
  readonly request_range: RangeRequest | undefined;
  readonly request_put: PutRequest | undefined;
  readonly request_delete_range: DeleteRangeRequest | undefined;
  readonly request_txn: TxnRequest | undefined;
}

export interface TxnRequest {
  readonly compare: readonly Compare[];
  readonly success: readonly RequestOp[];
  readonly failure: readonly RequestOp[];
}

export interface ResponseOp {
  readonly response_range?: RangeResponse;
  readonly response_put?: PutResponse;
  readonly response_delete_range?: DeleteRangeResponse;
  readonly response_txn?: TxnResponse;
}

export interface TxnResponse {
  readonly header: ResponseHeader;
  readonly succeeded: boolean;
  readonly responses: readonly ResponseOp[];
}

export interface CompactionRequest {
  readonly revision: bigint;
  readonly physical: boolean;
}

export interface LeaseRequest {
  readonly ID: bigint;
}

export interface LeaseGrantRequest extends LeaseRequest {
  /** Seconds. */
  readonly TTL: bigint;
}

export interface LeaseTimeToLiveRequest extends LeaseRequest {
  readonly keys: boolean;
}

export interface WatchCreateRequest extends KeyRange {
  readonly start_revision: bigint;
  readonly progress_notify: boolean;
  readonly filters: readonly number[];
  readonly prev_kv: boolean;
  readonly watch_id: bigint;
  readonly fragment: boolean;
}

/** One of the three. */
export interface WatchRequest {
  readonly create_request: WatchCreateRequest | undefined;
  readonly cancel_request: { readonly watch_id: bigint } | undefined;
  readonly progress_request: object | undefined;
}

export interface Event {
  /** 0: PUT, 1: DELETE. */
  readonly type: number;
  readonly kv: KeyValue;
  readonly prev_kv: KeyValue | undefined;
}

export interface WatchResponse {
  readonly header: ResponseHeader;
  readonly watch_id: bigint;
  readonly created?: boolean;
  readonly canceled?: boolean;
  readonly compact_revision?: bigint;
  readonly cancel_reason?: string;
  readonly fragment?: boolean;
  readonly events?: readonly Event[];
}

export interface LeaseResponse {
  readonly header: ResponseHeader;
  readonly ID: bigint;
  /** Seconds; 0: the lease is gone. */
  readonly TTL: bigint;
}

export interface LeaseTimeToLiveResponse {
  readonly header: ResponseHeader;
  readonly ID: bigint;
  /** Seconds left; -1: the lease is gone. */
  readonly TTL: bigint;
  readonly grantedTTL: bigint;
  readonly keys: readonly Bytes[];
}

export interface LeasesResponse {
  readonly header: ResponseHeader;
  readonly leases: readonly LeaseRequest[];
}

export interface NameAndPassword {
  readonly name: string;
  readonly password: string;
}

export interface UserAddRequest extends NameAndPassword {
  readonly options: { readonly no_password: boolean } | undefined;
}

export interface Named {
  readonly name: string;
}

export interface UserAndRole {
  readonly user: string;
  readonly role: string;
}

export interface UserRevokeRoleRequest extends Named {
  readonly role: string;
}

/** A permission for the keys of a range. */
export interface Permission extends KeyRange {
  /** 0: READ, 1: WRITE, 2: READWRITE. */
  readonly permType: number;
}

export interface RoleGrantPermissionRequest extends Named {
  readonly perm: Permission | undefined;
}

export interface RoleRevokePermissionRequest extends KeyRange {
  readonly role: string;
}

export interface AuthenticateResponse {
  readonly header: ResponseHeader;
  readonly token: string;
}

/** Answer to a request for one user's roles, or for all roles. */
export interface RolesResponse {
  readonly header: ResponseHeader;
  readonly roles: readonly string[];
}

export interface UsersResponse {
  readonly header: ResponseHeader;
  readonly users: readonly string[];
}

export interface RoleResponse {
  readonly header: ResponseHeader;
  readonly perm: readonly Permission[];
}

export interface AuthStatusResponse {
  readonly header: ResponseHeader;
  readonly enabled: boolean;
  readonly authRevision: bigint;
}

export interface StatusResponse {
  readonly header: ResponseHeader;
  readonly version: string;
  readonly dbSize: bigint;
  readonly leader: bigint;
  readonly raftIndex: bigint;
  readonly raftTerm: bigint;
  readonly raftAppliedIndex: bigint;
  readonly dbSizeInUse: bigint;
  readonly storageVersion: string;
  readonly dbSizeQuota: bigint;
  readonly downgradeInfo: object | undefined;
}

export interface Member {
  readonly ID: bigint;
  readonly name: string;
  readonly peerURLs: readonly string[];
  readonly clientURLs: readonly string[];
}

export interface MemberListResponse {
  readonly header: ResponseHeader;
  readonly members: readonly Member[];
}
