import { sleep, sleepUntil } from '../client/chance.ts';
import { type GoAnswered, type GoCalls, GoError, resultOf } from './go-client.ts';

/** Milliseconds between two looks whether a keep-alive is due, and before a failed stream of keep-alives begins again. */
const LOOK = 500;

/** Milliseconds between two looks whether the answers have stopped. */
const DEADLINE_LOOK = 1000;

/** Milliseconds within which no other leader can be elected. */
const PROMPT = 1000;

/** Milliseconds for the first answer. */
const FIRST = 5000;

/** `concurrency.Session` of Go: a lease that it keeps alive. */
export class GoSession {
  readonly client: GoCalls;
  /** The lease's id, in decimal digits. */
  readonly lease: string;
  /** Aborted when the session ends. */
  readonly done: AbortSignal;
  readonly #ended = new AbortController();
  readonly #ttl: number;
  readonly #now: () => number;
  readonly #looks: ReturnType<typeof setInterval>;
  /** When the last keep-alive was sent that was answered, or the grant. */
  #sentAt: number;
  #next: number;
  #deadline: number;

  /** @param ttl seconds */
  static async open(client: GoCalls, ttl: number, now: () => number): Promise<GoSession> {
    const granted = await client.call('/v3/lease/grant', { TTL: ttl }, { isRepeatable: true });
    return new GoSession(client, granted, now);
  }

  private constructor(client: GoCalls, { ID = '', TTL = '0', sentAt }: GoAnswered, now: () => number) {
    this.client = client;
    this.lease = ID;
    this.done = this.#ended.signal;
    this.#ttl = Number(TTL) * 1000;
    this.#now = now;
    this.#sentAt = sentAt;
    this.#next = now();
    this.#deadline = now() + FIRST;
    this.#looks = setInterval(() => {
      if (this.#deadline < now()) this.#end();
    }, DEADLINE_LOOK);
    void this.#keepAlive();
  }

  /**
   * Whether the lease may have ended: its TTL has passed since the last keep-alive that was answered promptly was **sent**. Go's client
   * counts from any answer, and looks only each second, so that its users learn it later.
   */
  get isOverdue(): boolean {
    return this.#now() >= this.#sentAt + this.#ttl;
  }

  async close(): Promise<void> {
    this.orphan();
    // Later than that, the lease has expired anyway.
    const { promise, cancel } = sleepUntil(this.#ttl);
    const revoked = this.client.call('/v3/lease/revoke', { ID: this.lease }, { isRepeatable: true });
    await Promise.race([revoked.catch(ignoreGoError), promise]);
    cancel();
  }

  /** Keeps the lease alive no more, and leaves it. */
  orphan(): void {
    this.#end();
  }

  #end(): void {
    clearInterval(this.#looks);
    this.#ended.abort();
  }

  async #keepAlive(): Promise<void> {
    for (; !this.done.aborted; await sleep(LOOK)) if (this.#next <= this.#now()) await this.#keepAliveOnce();
  }

  async #keepAliveOnce(): Promise<void> {
    try {
      const answer = await this.client.call('/v3/lease/keepalive', { ID: this.lease }, { needsLeader: true });
      const ttl = Number(resultOf(answer).TTL ?? 0) * 1000;
      if (ttl <= 0) return this.#end();
      // A leader that was stopped answers late, and for a lease that its successor lets expire.
      if (this.#now() - answer.sentAt < PROMPT) this.#sentAt = answer.sentAt;
      this.#next = this.#now() + ttl / 3;
      this.#deadline = this.#now() + ttl;
    } catch (error) {
      ignoreGoError(error);
    }
  }
}

/** @throws any error that is not of the cluster */
export function ignoreGoError(error: unknown): void {
  if (!(error instanceof GoError)) throw error;
}
