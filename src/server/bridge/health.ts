import { Scope } from '../../cancellation.ts';
import { errorText } from '../../error-text.ts';
import { EtcdConnectionFailed, EtcdException, EtcdLeaderElectionInProgress, EtcdUnusableAnswer } from '../../errors.ts';
import { Deadline } from '../../time.ts';
import type { V3Client } from '../../v3/client.ts';
import type { Page } from '../front/info.ts';
import type { BridgeRecord } from './records.ts';

/** Seconds within which etcd must answer a check. Those who ask usually wait for five or ten. */
const CHECK_WITHIN = 3;

/** All other errors are answers of a cluster that works, such as what the bridge's own user may not do. */
const OUTAGES = [EtcdConnectionFailed, EtcdLeaderElectionInProgress, EtcdUnusableAnswer];

/** Whether etcd answers a bridge: by the last check, or the last request of a client. */
export class Health {
  readonly #client: V3Client;
  readonly #log: ((record: BridgeRecord) => void) | undefined;
  #checking: Promise<void> | undefined;
  #isReachable: boolean | undefined;

  constructor(client: V3Client, log: ((record: BridgeRecord) => void) | undefined) {
    this.#client = client;
    this.#log = log;
  }

  /** False before the first answer, and after a request that no member has answered. */
  get isReachable(): boolean {
    return this.#isReachable ?? false;
  }

  /** The page `/health`, like that of a member of etcd: status 503 unless a majority of the cluster works. */
  readonly page: Page = {
    methods: ['GET', 'HEAD'],
    reply: async () => {
      // Checks that are asked for at the same time are one.
      this.#checking ??= this.#check().finally(() => {
        this.#checking = undefined;
      });
      await this.#checking;
      const isHealthy = this.isReachable;
      const headers = { 'Content-Type': 'application/json' };
      return { status: isHealthy ? 200 : 503, headers, body: `{"health":"${isHealthy}"}` };
    },
  };

  /** Notes the outcome of a request to etcd; undefined: it succeeded. */
  saw(error: unknown): void {
    // The bridge has refused the request by itself.
    if (error !== undefined && !(error instanceof EtcdException)) return;
    const isReachable = !OUTAGES.some((outage) => error instanceof outage);
    if (isReachable === this.#isReachable) return;
    this.#isReachable = isReachable;
    this.#log?.(isReachable ? { event: 'etcd reachable' } : { event: 'etcd unreachable', error: errorText(error) });
  }

  /** A linearizable read: a majority has to answer. */
  async #check(): Promise<void> {
    const late = new EtcdConnectionFailed(`etcd has not answered within ${CHECK_WITHIN} s`);
    const signal = new Scope().abortAt(Deadline.after(CHECK_WITHIN), () => late);
    try {
      await this.#client.requests.get(this.#client.lockPrefix, { signal });
      this.saw(undefined);
    } catch (error) {
      this.saw(error);
    } finally {
      signal.dispose();
    }
  }
}
