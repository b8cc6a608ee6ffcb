import { between, sleepUntil } from '../client/chance.ts';
import { GoClient, GoError } from './go-client.ts';
import { GoMutex, GoSessionExpired } from './go-mutex.ts';
import { GoSession, ignoreGoError } from './go-session.ts';
import { HttpConnections } from './http.ts';
import { type ModelOptions, takeLocks } from './model.ts';

/** A client of Go, by what it does when its session ends. */
interface Kind {
  readonly name: string;
  /** Whether its mutex looks for its own key after it has waited. */
  readonly looksAgain: boolean;
  /** Whether its work ends with the session. */
  readonly noticesLoss: boolean;
  /** Whether it revokes its lease at the end. */
  readonly closes: boolean;
}

/** A program with `concurrency.Mutex` of 3.5 that watches its session. */
const MUTEX: Kind = { name: "Go's Mutex", looksAgain: true, noticesLoss: true, closes: true };

/** `etcdctl lock NAME COMMAND` of 3.4, where the command runs on whatever happens. */
const ETCDCTL: Kind = { name: 'etcdctl lock', looksAgain: false, noticesLoss: false, closes: false };

export const runGo = (options: ModelOptions): Promise<void> => run(options, MUTEX);
export const runEtcdctl = (options: ModelOptions): Promise<void> => run(options, ETCDCTL);

/**
 * Takes locks, each with a session of its own: a session for several would use a key again, and a removal of it that arrives late would
 * remove the next one.
 */
async function run(options: ModelOptions, kind: Kind): Promise<void> {
  const http = new HttpConnections(options.network);
  const client = new GoClient(http, options.endpoints);
  await takeLocks(options, (name) => cycle(options, kind, client, name));
  http.close();
}

async function cycle(
  { client: plan, process, report }: ModelOptions,
  kind: Kind,
  client: GoClient,
  name: string,
): Promise<boolean> {
  const call = report.call(`${kind.name} ${name}`, 0);
  let session: GoSession | undefined;
  let isHeld = false;
  try {
    session = await GoSession.open(client, plan.ttl, () => process.now());
    const mutex = new GoMutex(session, `/_locks/${name}`, kind.looksAgain);
    const revision = await mutex.lock();
    isHeld = true;
    call.settled('held');
    await hold(session, revision);
    await mutex.unlock().catch(ignoreGoError);
  } catch (error) {
    if (!(error instanceof GoError || error instanceof GoSessionExpired)) throw error;
    call.settled(`${kind.name}: ${error.name}`);
  }
  if (kind.closes) await session?.close();
  else session?.orphan();
  return isHeld;

  async function hold(session: GoSession, revision: bigint): Promise<void> {
    const hold = report.hold({
      lock: name,
      mode: 'exclusive',
      tokens: { v3: revision },
      isOverdue: () => session.isOverdue,
    });
    const { promise, cancel } = sleepUntil(between(0, plan.hold));
    await (kind.noticesLoss ? Promise.race([promise, ended(session.done)]) : promise);
    cancel();
    if (kind.noticesLoss && session.done.aborted) hold.lost();
    hold.ended();
  }
}

const ended = (signal: AbortSignal): Promise<void> =>
  new Promise((resolve) => {
    if (signal.aborted) resolve();
    else signal.addEventListener('abort', () => resolve(), { once: true });
  });
