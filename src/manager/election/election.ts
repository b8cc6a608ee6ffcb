import { withCallersStack } from '../../base/callers-stack.ts';
import { EtcdClusterIdChanged, EtcdLockExpired, EtcdLockLost } from '../../errors.ts';
import type { LockStore } from '../../recipe/store.ts';
import type { Hold } from '../hold.ts';
import type { CheckedRequest } from '../options.ts';
import { type Leader, leaderAmong, observeLeaders } from './leader.ts';
import { type CampaignOptions, type Candidacy, checkIteration, type ObserveOptions } from './options.ts';
import { type Term, termOf } from './term.ts';

/**
 * An election: the candidates wait in the queue of a lock, and the holder of the lock is the leader. So entries of python-etcd's
 * `Lock`, of Go's `Mutex` and of `request()` in the same queue lead too, with no value.
 *
 * Modelled on Go's `concurrency.Election` (a value for observers, `leader`, `observe`, `resign`) and on Curator's `LeaderSelector`
 * with `autoRequeue()` (one term after the other).
 * @example
 * const election = locks.elect('scheduler', { value: 'http://10.0.0.7:8080' });
 * for await (const term of election.campaign({ signal })) await schedule(term.signal, term.fencingToken);
 */
export class Election {
  /** Name of the election and of its lock. */
  readonly name: string;
  /** What this process publishes while it leads; undefined if that is nothing. */
  readonly value: string | undefined;
  readonly #store: LockStore;
  readonly #request: CheckedRequest;
  readonly #take: (request: CheckedRequest) => Promise<Hold>;

  /**
   * @param take waits for the lock
   * @internal
   */
  constructor(store: LockStore, { name, value, request }: Candidacy, take: (request: CheckedRequest) => Promise<Hold>) {
    this.name = name;
    this.value = value;
    this.#store = store;
    this.#request = request;
    this.#take = take;
  }

  /**
   * Waits until this process leads, and yields the term. When the loop's body ends, the term ends: the process resigns and
   * campaigns again, at the end of the queue. So to lead for as long as possible, let the body run until `term.signal` aborts. If
   * the term was lost, the process campaigns again too.
   *
   * `break`, `return` and an error in the body resign and end the campaign. They leave no key behind. An outage does not
   * end the wait, even if etcd has never answered. So a wrong address is not reported either.
   * @example
   * for await (const term of election.campaign({ signal: stop.signal })) {
   *   await lead(AbortSignal.any([term.signal, stop.signal]), term.fencingToken);
   * }
   * @throws the signal's reason when it aborts the wait, or has aborted by the end of a term
   * @throws {EtcdClientClosed} when the client is closed, at the end of a term or while waiting
   * @throws {EtcdLockLost} at the end of a lost term, if campaigning again is unsafe: another cluster answers, or the election has an
   * `identity` and the entry was removed before it could expire, perhaps by another process with the same identity
   * @throws the errors of `LockManager.request` without `timeout`, except those that may be temporary, such as `EtcdConnectionFailed`
   * @throws {TypeError} for an unknown or invalid option: `campaign()` itself throws this one, the loop the others
   */
  campaign(options: CampaignOptions = {}): AsyncGenerator<Term, void, void> {
    return this.#campaign(checkIteration(options));
  }

  /**
   * Yields the current leader, then each next one as soon as it leads. Yields undefined while nobody leads: also at the
   * start, between two leaders if the queue was empty, and while requests with `mode: 'shared'` or a `limit` hold the
   * lock. Waits for changes by a watch or a long poll.
   *
   * After an outage, continues with the current leader. A leader of a short term may be missed whenever the queue is
   * read again: after an outage or a long silence, if the loop is so slow that etcd no longer has the changes, and with
   * `api: 'both'`.
   *
   * The leader may have changed since the read. So act as the leader only while you hold a `Term`, never because `own` is true here.
   * @example
   * for await (const leader of election.observe({ signal })) proxy.target = leader?.value;
   * @throws the signal's reason when it aborts
   * @throws {EtcdClientClosed} when the client is closed
   * @throws {EtcdConnectionFailed} if the first read fails, but not in a later outage
   * @throws {TypeError} for an unknown or invalid option, at the call
   */
  observe(options: ObserveOptions = {}): AsyncGenerator<Leader | undefined, void, void> {
    return observeLeaders(this.#store, this.name, checkIteration(options));
  }

  /**
   * Reads the current leader, by quorum; undefined if nobody leads.
   * @throws {EtcdConnectionFailed} when no member answers
   */
  async leader(): Promise<Leader | undefined> {
    const queue = this.#store.queue(this.name);
    try {
      return leaderAmong(this.name, queue.path, (await queue.read()).inOrder());
    } catch (error) {
      throw withCallersStack(error);
    }
  }

  async *#campaign(signal: AbortSignal | undefined): AsyncGenerator<Term, void, void> {
    for (;;) {
      signal?.throwIfAborted();
      const hold = await this.#take({ ...this.#request, signal });
      hold.begin(this.#request);
      try {
        yield termOf(hold, this.value);
      } finally {
        await hold.end();
      }
      const { lost } = await hold.end();
      if (lost !== undefined && !this.#mayRepeat(hold, lost)) throw withCallersStack(lost);
    }
  }

  /**
   * Whether to campaign again after a loss. Not if another cluster answered, because tokens of two clusters cannot be compared.
   * Not with an identity, if the entry was removed before it could expire, and not by the store itself: another process with that
   * identity may have evicted it, and the two would evict each other for ever.
   */
  #mayRepeat({ expired }: Hold, lost: unknown): boolean {
    const cause = lost instanceof EtcdLockLost ? lost.cause : undefined;
    if (cause instanceof EtcdClusterIdChanged) return false;
    if (!(cause instanceof EtcdLockExpired) || this.#request.identity === undefined) return true;
    return expired || cause.isEndedByStore;
  }
}
