import type { Clock } from '../../base/time.ts';
import { type EtcdVersion, RELEASES } from '../version.ts';
import { Auth } from './auth/auth.ts';
import type * as api from './messages.ts';
import { V3Store, type V3StoreOptions } from './store/store.ts';

/** Bytes of a database: a new one's, whatever is in it. */
const DB_SIZE = 20_480n;

/** etcd's default limit. */
const DB_SIZE_QUOTA = 2n ** 31n;

const RAFT_TERM = 2n;

export interface V3MemberOptions extends V3StoreOptions {
  readonly clusterId: bigint;
  readonly memberId: bigint;
  readonly name: string;
  readonly clientURLs: readonly string[];
}

/** The only member of an etcd v3 cluster in memory: it leads. */
export class V3Member {
  readonly store: V3Store;
  readonly auth: Auth;
  readonly version: EtcdVersion;
  readonly clock: Clock;
  readonly #options: V3MemberOptions;

  constructor(options: V3MemberOptions) {
    this.store = new V3Store(options);
    this.auth = new Auth(options.clock, options.version);
    this.version = options.version;
    this.clock = options.clock;
    this.#options = options;
  }

  /** Returns the header of an answer now. */
  get header(): api.ResponseHeader {
    return this.headerAt(this.store.revision);
  }

  /** @param revision undefined: the answer has none */
  headerAt(revision: bigint | undefined): api.ResponseHeader {
    const { clusterId: cluster_id, memberId: member_id } = this.#options;
    return { cluster_id, member_id, ...(revision === undefined ? {} : { revision }), raft_term: RAFT_TERM };
  }

  get status(): api.StatusResponse {
    return {
      header: this.header,
      version: RELEASES[this.version].server,
      dbSize: DB_SIZE,
      leader: this.#options.memberId,
      raftIndex: this.store.revision,
      raftTerm: RAFT_TERM,
      raftAppliedIndex: this.store.revision,
      dbSizeInUse: DB_SIZE,
      ...(this.version === '3.6'
        ? this.#statusOf36
        : { storageVersion: '', dbSizeQuota: 0n, downgradeInfo: undefined }),
    };
  }

  get #statusOf36() {
    return { storageVersion: RELEASES['3.6'].cluster, dbSizeQuota: DB_SIZE_QUOTA, downgradeInfo: {} };
  }

  /** Lists this member. No peer can connect to it, but clients expect a peer URL: each member of etcd has one. */
  get members(): api.MemberListResponse {
    const { memberId: ID, name, clientURLs } = this.#options;
    return { header: this.headerAt(undefined), members: [{ ID, name, peerURLs: clientURLs, clientURLs }] };
  }
}
