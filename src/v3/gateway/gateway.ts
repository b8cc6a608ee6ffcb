import type { Scope } from '../../base/cancellation.ts';
import type { PendingWork } from '../../base/pending-work.ts';
import type { Deadline } from '../../base/time.ts';
import {
  EtcdException,
  EtcdInsufficientPermissions,
  EtcdLeaderElectionInProgress,
  EtcdUnusableAnswer,
} from '../../errors.ts';
import { type CloseOptions, Cluster, type ClusterAttempt, type ClusterCall } from '../../http/cluster.ts';
import type { Endpoint } from '../../http/endpoint.ts';
import type { MemberList } from '../../http/failover/followed-members.ts';
import type { Repeat } from '../../http/failover/round.ts';
import type { HttpSettings } from '../../http/options.ts';
import type { MemberHealth, PingOptions } from '../../http/ping.ts';
import { AskedOnce } from './asked-once.ts';
import { AUTHENTICATE, decodeToken, refused, type Token } from './authentication.ts';
import { decodeBody, TokenRefused } from './errors.ts';
import { type AskedMember, answerTo, GatewayMember, requestOf } from './member.ts';
import { Fields, type Header } from './messages.ts';
import { gatewayPrefix, VERSION } from './version.ts';

export type { AskedMember, GatewayAnswer } from './member.ts';

/** Seconds to wait for an answer that several calls share. A login takes 0.1 to 0.2 s of the member's CPU time. */
const SHARED_TIMEOUT = 5;

/** Maximum number of new logins of one attempt. With JSON Web Tokens, each change of users or roles invalidates all tokens. */
const MOST_LOG_INS = 3;

const NO_TOKEN: Token = { text: undefined };

/** Options of one call. */
export type GatewayCall = ClusterCall;

/** Makes calls to the JSON gateways of one cluster (etcd 3.3 and later): finds their path prefix, logs in, checks the cluster id. */
export class GatewayClient {
  readonly #settings: HttpSettings;
  readonly #cluster: Cluster;
  readonly #prefixes = new AskedOnce<string>();
  readonly #tokens = new AskedOnce<Token>();

  constructor(settings: HttpSettings) {
    this.#settings = settings;
    this.#cluster = new Cluster(settings, readMembers);
  }

  /** Id of the cluster that answered last; undefined before the first answer. */
  get clusterId(): string | undefined {
    return this.#cluster.id;
  }

  /**
   * Whether it knows only one member, so that a request that is not answered cannot be sent to another. A host name may have several
   * addresses, each a member.
   */
  get knowsOneMember(): boolean {
    return this.#cluster.endpoints.isOneMember;
  }

  /** Work that closing the client waits for. */
  get pending(): PendingWork {
    return this.#cluster.pending;
  }

  /** Ends all work when the client is closed. */
  get destroyed(): Scope {
    return this.#cluster.destroyed;
  }

  /** Makes one call: runs `attempt` with one member after another until one answers. */
  call<T>(repeat: Repeat, options: GatewayCall, attempt: (member: AskedMember) => Promise<T>): Promise<T> {
    return this.#cluster.call(repeat, options, (one) => this.#attempt(one, attempt));
  }

  /**
   * See {@link EtcdClient.ping}. Asks for the status, unlike etcd's `/health`: on etcd 3.4, that costs a write of raft.
   */
  ping(options: PingOptions): Promise<readonly MemberHealth[]> {
    return this.#cluster.ping('v3', options, (one) =>
      this.#attempt(one, async (member) => {
        const { fields } = await member.ask('/maintenance/status', {});
        if (fields.unsigned('leader') === 0n) throw new EtcdLeaderElectionInProgress('the member knows no leader');
        const errors = fields.texts('errors');
        if (fields.flag('isLearner')) errors.push('it is a learner');
        if (errors.length > 0) throw new EtcdException(`the member is not healthy: ${errors.join(', ')}`);
      }),
    );
  }

  /** See {@link Cluster.close}. */
  close(options: CloseOptions, finish: (until: Deadline) => Promise<void>): Promise<void> {
    return this.#cluster.close(options, finish);
  }

  /**
   * Makes one attempt. Caches a token for each member: a member forgets a token that is not used there for some minutes. Logs in
   * again when the token is refused.
   */
  async #attempt<T>(one: ClusterAttempt, attempt: (member: AskedMember) => Promise<T>): Promise<T> {
    const { endpoint } = one;
    const { username } = this.#settings;
    const prefix = this.#prefixes.known(endpoint) ?? (await this.#prefixes.get(one, () => this.#findPrefix(one)));
    for (let logIns = 0; ; logIns += 1) {
      const token = this.#tokens.known(endpoint) ?? (await this.#token(one, prefix));
      try {
        const checkCluster = (header: Header): void => this.#checkCluster(header, endpoint);
        return await attempt(new GatewayMember(one, { prefix, token, username, checkCluster }));
      } catch (error) {
        // The member may now run another version, with another path prefix.
        if (error instanceof EtcdUnusableAnswer && error.httpStatus === 404) this.#prefixes.forget(endpoint, prefix);
        if (!(error instanceof TokenRefused)) throw error;
        this.#tokens.forget(endpoint, token);
        if (this.#settings.password === undefined || logIns === MOST_LOG_INS) throw error.final;
      }
    }
  }

  async #findPrefix(one: ClusterAttempt): Promise<string> {
    return gatewayPrefix(await answerTo(this.#shared(one), VERSION));
  }

  async #token(one: ClusterAttempt, prefix: string): Promise<Token> {
    const { username, password } = this.#settings;
    const logIn = async (): Promise<Token> => {
      if (password === undefined) return NO_TOKEN;
      const shared = this.#shared(one);
      return password.use(shared, async (text) => {
        const json = JSON.stringify({ name: username, password: text });
        return decodeToken(await answerTo(shared, requestOf(prefix + AUTHENTICATE, json, NO_TOKEN)), text);
      });
    };
    try {
      return await this.#tokens.get(one, logIn);
    } catch (error) {
      if (error instanceof EtcdInsufficientPermissions) throw refused(error, { member: one.endpoint.url, username });
      throw error;
    }
  }

  /** Returns an attempt at a request that several calls share: the request continues when one of these calls ends. */
  #shared(one: ClusterAttempt): ClusterAttempt {
    return { ...one, timeout: Math.min(SHARED_TIMEOUT, this.#settings.readTimeout), ending: this.destroyed };
  }

  /** @throws {EtcdClusterIdChanged | EtcdUnusableAnswer} if the cluster id is not the expected one, or absent */
  #checkCluster({ clusterId }: Header, endpoint: Endpoint): void {
    if (clusterId === undefined) throw new EtcdUnusableAnswer('the answer has no cluster id', { outcomeUnknown: true });
    this.#cluster.checkId(clusterId, endpoint);
  }
}

/** Reads the member list from one member. Needs no token. */
async function readMembers(one: ClusterAttempt): Promise<MemberList> {
  const prefix = gatewayPrefix(await answerTo(one, VERSION));
  const answer = await answerTo(one, requestOf(`${prefix}/cluster/member/list`, '{}', NO_TOKEN));
  const list = new Fields(answer, decodeBody(answer));
  // A learner serves no locks.
  const members = list.list('members').filter((member) => !member.flag('isLearner'));
  const urls = members.flatMap((member) => member.texts('clientURLs'));
  // The answer has no revision.
  return { urls, clusterId: list.message('header').unsigned('cluster_id').toString(16) };
}
