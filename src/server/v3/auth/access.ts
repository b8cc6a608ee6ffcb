/** What each request may do with keys. Nested transactions are checked as well; etcd 3.4 does not check them. */
import type { KeyRange } from '../bytes.ts';
import type * as api from '../messages.ts';
import type { Auth } from './auth.ts';

/** The keys of a lease. A write that moves a key to a lease makes the key end with the others. */
type KeysOf = (lease: bigint) => Iterable<string>;

/** Checks the requests of one user. @throws {EtcdV3Refusal} if one of them is not allowed, as each method does */
export class UserAccess {
  readonly #auth: Auth;
  readonly #user: string | undefined;
  readonly #keysOf: KeysOf;

  constructor(auth: Auth, user: string | undefined, keysOf: KeysOf) {
    this.#auth = auth;
    this.#user = user;
    this.#keysOf = keysOf;
  }

  read(range: KeyRange): void {
    this.#auth.check(this.#user, 'READ', range);
  }

  put({ key, lease, prev_kv: readsOld }: api.PutRequest): void {
    const own = { key, range_end: '' };
    this.#auth.check(this.#user, 'WRITE', own);
    if (readsOld) this.read(own);
    if (lease !== 0n) this.endLease(lease);
  }

  delete(request: api.DeleteRangeRequest): void {
    this.#auth.check(this.#user, 'WRITE', request);
    if (request.prev_kv) this.read(request);
  }

  txn({ compare, success, failure }: api.TxnRequest): void {
    for (const range of compare) this.read(range);
    for (const { request_range, request_put, request_delete_range, request_txn } of [...success, ...failure]) {
      if (request_range) this.read(request_range);
      if (request_put) this.put(request_put);
      if (request_delete_range) this.delete(request_delete_range);
      if (request_txn) this.txn(request_txn);
    }
  }

  /** Whether the user may remove all keys of a lease. */
  endLease(lease: bigint): void {
    if (!this.#auth.isEnabled) return; // a lease may have many keys
    for (const key of this.#keysOf(lease)) this.#auth.check(this.#user, 'WRITE', { key, range_end: '' });
  }

  /** As {@link UserAccess.endLease}, but there must be a user. */
  renewLease(lease: bigint): void {
    this.#auth.require(this.#user);
    this.endLease(lease);
  }

  readLease(lease: bigint): void {
    if (!this.#auth.isEnabled) return;
    for (const key of this.#keysOf(lease)) this.read({ key, range_end: '' });
  }

  admin(isOwn?: (user: string) => boolean): void {
    this.#auth.checkAdmin(this.#user, isOwn);
  }
}
