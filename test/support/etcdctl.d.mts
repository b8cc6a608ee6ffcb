export interface EtcdctlLock {
  /** Resolves once the lock is held. Rejects if `etcdctl` ends before that. */
  readonly held: Promise<{
    readonly key: string;
    /** Go's fencing number: the store's revision when the lock was acquired. */
    readonly token: bigint;
  }>;
  /** Releases a held lock. Rejects if `etcdctl` could not. Its lease stays until it expires: `etcdctl lock` does not end it. */
  release(): Promise<void>;
  kill(): void;
}

export interface EtcdctlOptions {
  readonly endpoints: readonly string[];
  /** Seconds of its lease. */
  readonly ttl: number;
}

/** Waits for the lock by `etcdctl lock`, and holds it until `release()`. Killed with this process. */
export declare function lockByEtcdctl(path: string, options: EtcdctlOptions): EtcdctlLock;
