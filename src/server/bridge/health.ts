import { Scope } from '../../cancellation.ts';
import { errorText } from '../../error-text.ts';
import { EtcdConnectionFailed, EtcdInsufficientPermissions, EtcdLeaderElectionInProgress } from '../../errors.ts';
import { Deadline } from '../../time.ts';
import type { V3Client } from '../../v3/client.ts';
import type { Page } from '../front/info.ts';
import type { BridgeRecord } from './records.ts';

/** Seconds within which etcd must answer a check. Those who ask usually wait for five or ten. */
const CHECK_WITHIN = 3;

/** Whether etcd answers a bridge: by the last check, or the last request of a client. */
export class Health {
  readonly #client: V3Client;
  readonly #log: ((record: BridgeRecord) => void) | undefined;
  #checking: Promise<boolean> | undefined;
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
      const isHealthy = await this.#checking;
      const headers = { 'Content-Type': 'application/json' };
      return { status: isHealthy ? 200 : 503, headers, body: `{"health":"${isHealthy}"}` };
    },
  };

  /** Notes the outcome of a request to etcd; undefined: it succeeded. */
  saw(error: unknown): void {
    const isReachable = !(error instanceof EtcdConnectionFailed || error instanceof EtcdLeaderElectionInProgress);
    if (isReachable === this.#isReachable) return;
    this.#isReachable = isReachable;
    this.#log?.(isReachable ? { event: 'etcd reachable' } : { event: 'etcd unreachable', error: errorText(error) });
  }

  /** A linearizable read: a majority has to answer. */
  async #check(): Promise<boolean> {
    const late = new EtcdConnectionFailed(`etcd has not answered within ${CHECK_WITHIN} s`);
    const signal = new Scope().abortAt(Deadline.after(CHECK_WITHIN), () => late);
    try {
      await this.#client.requests.get(this.#client.lockPrefix, { signal });
      this.saw(undefined);
    } catch (error) {
      this.saw(error);
      // A cluster that says what the bridge's own user may not do has answered.
      return error instanceof EtcdInsufficientPermissions;
    } finally {
      signal.dispose();
    }
    return true;
  }
}
