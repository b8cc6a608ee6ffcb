import { Scope, type Source } from '../../base/cancellation.ts';
import { errorText } from '../../base/error-text.ts';
import { Deadline } from '../../base/time.ts';
import { EtcdConnectionFailed, EtcdException, EtcdLeaderElectionInProgress, EtcdUnusableAnswer } from '../../errors.ts';
import { etcdJson, type MemberInfo } from '../../v2/wire.ts';
import type { Page } from '../front/info.ts';
import type { BridgeRecord } from './records.ts';
import { REFUSED } from './target.ts';
import { TTL_REFUSED } from './writes.ts';

/** Seconds within which etcd must answer a health check. Clients of `/health` need a longer timeout than this. */
const CHECK_WITHIN = 3;

const JSON_TYPE = { 'Content-Type': 'application/json' };

/** Errors that mean an outage of etcd. All others, such as "permission denied", are answers from a working cluster. */
const OUTAGES = [EtcdConnectionFailed, EtcdLeaderElectionInProgress, EtcdUnusableAnswer];

const isOutage = (error: unknown): boolean => OUTAGES.some((outage) => error instanceof outage);

/** Error numbers of the bridge's own refusals. */
const REFUSALS: readonly (number | undefined)[] = [REFUSED, TTL_REFUSED];

/**
 * Reads each store of etcd. Returns the errors of the stores that have not answered within {@link CHECK_WITHIN} seconds, or with an
 * error.
 */
export const failedReads = (readStores: (signal: Source) => Promise<unknown>[]): Promise<unknown[]> =>
  inTime(async (signal) => {
    const outcomes = await Promise.allSettled(readStores(signal));
    return outcomes.flatMap((outcome) => (outcome.status === 'rejected' ? [outcome.reason] : []));
  });

/** Runs a check with a signal that aborts if etcd has not answered within {@link CHECK_WITHIN} seconds. */
async function inTime<T>(check: (signal: Source) => Promise<T>): Promise<T> {
  const late = new EtcdConnectionFailed(`etcd has not answered within ${CHECK_WITHIN} s`);
  const signal = new Scope().abortAt(Deadline.after(CHECK_WITHIN), () => late);
  try {
    return await check(signal);
  } finally {
    signal.dispose();
  }
}

/** Reads of etcd by a health check. */
export interface HealthReads {
  /** Begins a read of each store, for which a majority of its members must work. */
  check(signal: Source): Promise<unknown>[];
  /** Whether the cluster has an alarm, such as NOSPACE. */
  hasAlarm(signal: Source): Promise<boolean>;
}

/** Tracks whether etcd answers the bridge, by the last health check or request of a client. */
export class Health {
  readonly #reads: HealthReads;
  readonly #log: ((record: BridgeRecord) => void) | undefined;
  #checking: Promise<boolean> | undefined;
  #isReachable: boolean | undefined;

  constructor(reads: HealthReads, log: ((record: BridgeRecord) => void) | undefined) {
    this.#reads = reads;
    this.#log = log;
  }

  /** Whether the last check or request showed no outage of etcd. False before the first one. */
  get isReachable(): boolean {
    return this.#isReachable ?? false;
  }

  /** The page `/health`, like that of a member of etcd: status 503 unless a majority of the cluster works, and without an alarm. */
  readonly page: Page = {
    methods: ['GET', 'HEAD'],
    reply: async () => {
      const isHealthy = await this.#isHealthy();
      return { status: isHealthy ? 200 : 503, headers: JSON_TYPE, body: `{"health":"${isHealthy}"}` };
    },
  };

  /** The page `/v2/members/leader`: the bridge itself if it is healthy, else status 503, as during an election. */
  leaderPage(bridge: MemberInfo): Page {
    return {
      methods: ['GET'],
      ofCluster: true,
      reply: async () =>
        (await this.#isHealthy())
          ? { status: 200, headers: JSON_TYPE, body: etcdJson(bridge) }
          : { status: 503, headers: JSON_TYPE, body: etcdJson({ message: 'During election' }) },
    };
  }

  /** Concurrent requests share one check. */
  #isHealthy(): Promise<boolean> {
    this.#checking ??= this.#check().finally(() => {
      this.#checking = undefined;
    });
    return this.#checking;
  }

  /** Records the outcome of a request to etcd: its error, or undefined if it succeeded. */
  saw(error: unknown): void {
    // The bridge itself has refused the request, so the error says nothing about etcd.
    if (error !== undefined && (!(error instanceof EtcdException) || REFUSALS.includes(error.errorCode))) return;
    const isReachable = !isOutage(error);
    if (isReachable === this.#isReachable) return;
    this.#isReachable = isReachable;
    this.#log?.(isReachable ? { event: 'etcd reachable' } : { event: 'etcd unreachable', error: errorText(error) });
  }

  /** Checks each store of etcd by a read. Resolves to whether etcd is healthy. */
  async #check(): Promise<boolean> {
    const [errors, hasAlarm] = await Promise.all([
      failedReads((signal) => this.#reads.check(signal)),
      inTime((signal) => this.#reads.hasAlarm(signal)),
    ]);
    this.saw(errors.find(isOutage) ?? errors[0]);
    // With an alarm, etcd still serves reads and removals, so it is reachable.
    return this.isReachable && !hasAlarm;
  }
}
