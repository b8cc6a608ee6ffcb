import { pause, type Source } from '../../base/cancellation.ts';
import { Backoff, Deadline } from '../../base/time.ts';
import { EtcdException, failuresOf, isTransient } from '../../errors.ts';

/**
 * Seconds for which a request is repeated, or waits for the answer of the only member. etcd v2 lets requests wait for about as long
 * while it elects a leader.
 */
export const RETRY_FOR = 5;

/** Milliseconds between two tries. */
const PAUSE = { first: 50, most: 500 };

/**
 * Calls `call` again while a member answers that it cannot serve requests at the moment, such as during an election. If no member
 * answers at all, rejects at once: the client may know another bridge that reaches etcd.
 * @param call must be safe to repeat after an unknown outcome
 * @param signal aborts when the client hangs up
 */
export async function retried<T>(call: () => Promise<T>, signal?: Source): Promise<T> {
  const backoff = new Backoff(PAUSE);
  const deadline = Deadline.after(RETRY_FOR);
  for (;;) {
    try {
      return await call();
    } catch (error) {
      if (!isAnswered(error) || deadline.passed || signal?.aborted) throw error;
    }
    await pause(backoff.next(), ...(signal ? [signal] : []));
  }
}

/** Whether a member has answered with a temporary failure. */
const isAnswered = (error: unknown): boolean =>
  isTransient(error) &&
  [error, ...failuresOf(error).map((failure) => failure.error)].some(
    (one) => one instanceof EtcdException && one.errorCode !== undefined,
  );
