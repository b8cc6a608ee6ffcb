// Compiled, never run: calls of LockManager that the compiler must accept, their result types, and calls that it must refuse.
import {
  type Election,
  type EtcdClient,
  Fence,
  type Held,
  type HoldOptions,
  type Leader,
  type Lock,
  type LockInfo,
  LockManager,
  type LockManagerSnapshot,
  type LockMode,
  type OnceJob,
  type OpenHeld,
  type RequestOptions,
  type RequestTrace,
  type Term,
  type Tick,
  type TickReport,
} from '../../src/index.ts';

type Same<A, B> = (<T>() => T extends A ? 1 : 2) extends <T>() => T extends B ? 1 : 2 ? true : false;

/** Compiles only for a value of exactly this type. */
declare function is<Expected>(): <Actual>(
  value: Actual,
  ...same: Same<Actual, Expected> extends true ? [] : [never]
) => void;

export function comparing(something: unknown, anything: { readonly any: 'thing' } | undefined): void {
  is<unknown>()(something);
  // @ts-expect-error
  is<{ readonly any: 'thing' }>()(anything);
  // @ts-expect-error a wider type is not the same
  is<number | string>()(7 as number);
}

export function making(client: EtcdClient): void {
  is<LockManager>()(new LockManager(client));
  new LockManager(client, { ttl: 30, timeout: 60, identity: 'pod-1', label: 'web-1', margin: 2 });
  // @ts-expect-error a manager needs a client
  new LockManager();
  // @ts-expect-error an address is not a client
  new LockManager('http://127.0.0.1:2379');
  // @ts-expect-error a manager always renews, so a lock needs a TTL
  new LockManager(client, { ttl: null });
  // @ts-expect-error the mode is an option of a request
  new LockManager(client, { mode: 'shared' });
  // @ts-expect-error
  new LockManager(client, { signal: AbortSignal.timeout(1) });
}

export async function requesting(locks: LockManager, signal: AbortSignal, maybe: boolean): Promise<void> {
  is<number>()(await locks.request('x', () => 7));
  is<string>()(await locks.request('x', async () => 'seven'));
  is<void>()(await locks.request('x', () => {}));
  await locks.request('x', (held) => is<Held>()(held));
  await locks.request('x', {}, (held) => is<Held>()(held));
  await locks.request(
    'x',
    { mode: 'shared', ttl: 5, timeout: 1, identity: 'a', label: '', reentrant: true, signal },
    (held) => is<Held>()(held),
  );
  await locks.request('x', { ifAvailable: false }, (held) => is<Held>()(held));
  await locks.request('x', { ifAvailable: true }, (held) => is<Held | null>()(held));
  await locks.request('x', { ifAvailable: maybe }, (held) => is<Held | null>()(held));
  is<number | undefined>()(await locks.request('x', { ifAvailable: true }, (held) => held?.expiresIn()));

  // @ts-expect-error null if the lock is taken
  await locks.request('x', { ifAvailable: true }, (held) => held.key);
  // @ts-expect-error the callback must accept null
  await locks.request('x', { ifAvailable: true }, (_: Held) => {});
  // @ts-expect-error
  await locks.request('x', { mode: 'write' }, () => {});
  // @ts-expect-error
  await locks.request('x', { ttl: null }, () => {});
  // @ts-expect-error
  await locks.request('x', { blocking: false }, () => {});
  // @ts-expect-error the margin is an option of the manager
  await locks.request('x', { margin: 1 }, () => {});
  // @ts-expect-error Web Locks can steal a lock; LockManager cannot
  await locks.request('x', { steal: true }, () => {});
  // @ts-expect-error
  await locks.request('x', { signal: new AbortController() }, () => {});
  // @ts-expect-error the callback is missing
  await locks.request('x');
  // @ts-expect-error
  await locks.request('x', { mode: 'shared' });
  // @ts-expect-error the options come before the callback
  await locks.request('x', () => {}, {});
  // @ts-expect-error a promise is not a callback
  await locks.request('x', Promise.resolve(7));
  // @ts-expect-error a callback has only one argument
  await locks.request('x', (_held: Held, _more: string) => {});
  // @ts-expect-error
  await locks.request(7, () => {});
}

export async function holding(locks: LockManager): Promise<void> {
  await locks.request('x', (held) => {
    is<string>()(held.name);
    is<LockMode>()(held.mode);
    is<string>()(held.key);
    is<string>()(held.uuid);
    is<bigint>()(held.fencingToken);
    is<string>()(held.toJSON().fencingToken);
    is<AbortSignal>()(held.signal);
    is<number>()(held.expiresIn());
    is<void>()(held.assertHeld());
    // @ts-expect-error a request releases its hold after the callback
    held.release();
    // @ts-expect-error
    held[Symbol.asyncDispose]();
    // @ts-expect-error
    held.fencingToken = 8n;
    // @ts-expect-error
    held.signal = AbortSignal.timeout(1);
    // @ts-expect-error
    held.name = 'y';
    // @ts-expect-error tokens are bigints: a number would lose digits
    const _token: number = held.fencingToken;
  });
}

export async function opening(locks: LockManager, options: HoldOptions): Promise<void> {
  is<OpenHeld>()(await locks.acquire('x'));
  is<OpenHeld>()(await locks.acquire('x', { mode: 'shared', timeout: 1 }));
  is<OpenHeld | null>()(await locks.acquire('x', { ifAvailable: true }));
  is<OpenHeld | null>()(await locks.acquire('x', options));
  const held = await locks.acquire('x');
  is<boolean>()(await held.release());
  {
    await using inBlock = await locks.acquire('x');
    await using perhaps = await locks.acquire('x', { ifAvailable: true });
    is<OpenHeld>()(inBlock);
    is<OpenHeld | null>()(perhaps);
  }
  // @ts-expect-error reentrant is an option of requests with a callback
  await locks.acquire('x', { reentrant: true });
  // @ts-expect-error options of a request may contain reentrant
  await locks.acquire('x', {} as RequestOptions);
  // Optional values may be passed as undefined.
  await locks.acquire('x', { timeout: undefined, signal: undefined, mode: undefined } satisfies HoldOptions);
  // @ts-expect-error
  await locks.acquire('x', () => {});
  // @ts-expect-error null if the lock is taken
  await (await locks.acquire('x', { ifAvailable: true })).release();
  // @ts-expect-error its release is asynchronous
  using _tooSoon = held;
  // @ts-expect-error acquire has to be awaited
  await using _promise = locks.acquire('x');
}

export async function electing(locks: LockManager, signal: AbortSignal): Promise<void> {
  const election = locks.elect('x', { value: 'http://a', ttl: 5, identity: 'a', label: '' });
  is<Election>()(election);
  is<Election>()(locks.elect('x'));
  for await (const term of election.campaign({ signal })) {
    is<Term>()(term);
    is<Held>()(term satisfies Held as Held);
    is<string | undefined>()(term.value);
    is<boolean>()(await term.resign());
    // @ts-expect-error a term ends by resign()
    term.release();
  }
  for await (const leader of election.observe({ signal })) {
    is<Leader | undefined>()(leader);
    // @ts-expect-error undefined while nobody leads
    leader.value;
  }
  is<Leader | undefined>()(await election.leader());
  // @ts-expect-error
  locks.elect('x', { value: 7 });
  // @ts-expect-error an election is exclusive
  locks.elect('x', { mode: 'shared' });
  // @ts-expect-error a request has no value
  await locks.acquire('x', { value: 'http://a' });
  // @ts-expect-error
  election.campaign(signal);
  // @ts-expect-error an election waits for its leadership in campaign()
  await locks.elect('x').acquire();
}

export async function looking(locks: LockManager, info: LockInfo, trace: RequestTrace): Promise<void> {
  is<LockManagerSnapshot>()(await locks.query());
  const { held, pending } = await locks.query('x');
  is<readonly LockInfo[]>()(held);
  is<readonly LockInfo[]>()(pending);
  is<number | undefined>()(info.ttl);
  is<string | undefined>()(info.identity);
  is<string | undefined>()(info.label);
  is<bigint | undefined>()(trace.fencingToken);
  is<number | undefined>()(trace.waited);
  is<unknown>()(trace.error);
  is<unknown>()(trace.result);
  // @ts-expect-error a snapshot is read-only
  held.push(info);
  // @ts-expect-error
  trace.name = 'y';
}

export async function fencing(held: Held): Promise<void> {
  const fence = new Fence((_resource, token) => token);
  new Fence(async (_resource, token) => token);
  is<void>()(await fence.accept('x', held.fencingToken));
  // @ts-expect-error
  await fence.accept('x', 7);
  // @ts-expect-error a number from a database has to be converted to a bigint
  new Fence(() => 7);
}

export async function confusing(lock: Lock, locks: LockManager): Promise<void> {
  // @ts-expect-error
  await lock.request('x', () => {});
  // @ts-expect-error
  await lock.query();
  // @ts-expect-error
  await lock.acquire({ mode: 'shared' });
  // @ts-expect-error
  await lock.acquire({ ttl: 30 });
  // @ts-expect-error the name of the lock is missing
  await locks.acquire({ ttl: 30 });
  // @ts-expect-error release is a method of the hold, not of the manager
  await locks.release('x');
}

export async function runningOnce(locks: LockManager, signal: AbortSignal): Promise<void> {
  is<OnceJob>()(locks.once('x', { every: '1h' }, () => {}));
  locks.once('x', { every: '1h' }, (held, tick) => {
    is<Held>()(held);
    is<Tick>()(tick);
    is<number | undefined>()(tick.missed);
  });
  const options = { every: '@daily', timeZone: 'UTC', ttl: 5, identity: 'a', label: '', maxHold: 9, signal };
  await using job = locks.once('x', { ...options, report: (report) => is<TickReport>()(report) }, async () => 7);
  is<void>()(await job.stopped);
  // @ts-expect-error a job needs a schedule
  locks.once('x', {}, () => {});
  // @ts-expect-error
  locks.once('x', () => {});
  // @ts-expect-error an interval has a unit
  locks.once('x', { every: 3600 }, () => {});
  // @ts-expect-error each tick is for one host alone
  locks.once('x', { every: '1h', mode: 'shared' }, () => {});
}
