import { setImmediate } from 'node:timers/promises';
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { Deadline } from '../../../src/base/time.ts';
import { LocalQueue, localQueue, type Turn } from '../../../src/manager/local-queue.ts';
import type { AttemptLimits } from '../../../src/recipe/attempt.ts';
import { type Claim, isAlone } from '../../../src/recipe/entries/entry-value.ts';
import { holderOf } from '../../../src/recipe/entries/holder.ts';
import { MemoryStore } from '../../../src/server/store/memory.ts';
import { listenersOf } from '../../support/leaks.ts';

/** Limits of a wait that only its signal ends. */
const limits = (signal?: AbortSignal, blocking = true): AttemptLimits => ({
  blocking,
  timeout: 0,
  deadline: Deadline.never,
  signal,
});

const ALONE: Claim = { mode: 'exclusive', limit: undefined };
const SHARED: Claim = { mode: 'shared', limit: undefined };
const TWO: Claim = { mode: 'exclusive', limit: 2 };

/** One request and its state. */
class Request {
  readonly claim: Claim;
  readonly abort = new AbortController();
  state: 'waiting' | 'arriving' | 'queued' | 'ended' | 'aborted' = 'waiting';
  turn: Turn | undefined;

  constructor(claim: Claim) {
    this.claim = claim;
  }

  get isInside(): boolean {
    return this.state === 'arriving' || this.state === 'queued';
  }
}

/** A local queue and its requests, driven step by step. */
class Driven {
  readonly requests: Request[] = [];
  readonly closing = new AbortController();
  /** Whether the queue has reported that it is idle since a request last had a turn. */
  isIdle = true;
  readonly queue = new LocalQueue('/_locks/x', this.closing.signal, () => {
    this.isIdle = true;
  });

  async enter(claim: Claim, { abort = false, blocking = true } = {}): Promise<Request> {
    const request = new Request(claim);
    this.requests.push(request);
    if (abort) request.abort.abort('reason');
    void this.queue.enter({ ...claim, ...limits(request.abort.signal, blocking) }).then(
      (turn) => {
        this.isIdle = false;
        request.turn = turn;
        request.state = 'arriving';
      },
      (reason: unknown) => {
        expect(reason).toBe('reason');
        request.state = 'aborted';
      },
    );
    await setImmediate();
    return request;
  }

  async queued(request: Request): Promise<void> {
    if (request.state === 'arriving') request.state = 'queued';
    request.turn?.queued();
    await setImmediate();
  }

  async end(request: Request): Promise<void> {
    if (request.isInside) request.state = 'ended';
    request.turn?.end();
    await setImmediate();
  }

  async abort(request: Request): Promise<void> {
    const expected = request.state === 'waiting' ? 'aborted' : request.state;
    request.abort.abort('reason');
    await setImmediate();
    expect(request.state).toBe(expected);
  }

  states(): string[] {
    return this.requests.map(({ state }) => state);
  }
}

/** Checks what must be true after every step. */
function check({ requests, queue, closing, isIdle }: Driven): void {
  const inside = requests.filter((request) => request.isInside);
  const [writer, ...others] = inside.filter(({ claim }) => isAlone(claim));
  // At most one writer has a turn, and its turn is the last: the requests before it have entries in etcd's queue already.
  expect(others).toEqual([]);
  if (writer) expect(inside.at(-1)).toBe(writer);
  const arriving = inside.filter(({ state }) => state === 'arriving');
  if (writer) expect(arriving.filter((request) => request !== writer)).toEqual([]);
  const limited = inside.filter(({ claim }) => claim.limit !== undefined);
  expect(limited.length).toBeLessThanOrEqual(2);

  const [first] = requests.filter(({ state }) => state === 'waiting');
  const mustWait = ({ mode, limit }: Claim): boolean =>
    writer !== undefined ||
    (limit !== undefined && limited.length === limit) ||
    arriving.some(({ claim }) => mode === 'exclusive' || claim.mode === 'exclusive');
  if (first) {
    // No later request has overtaken this one, and it waits only because it must.
    expect(inside.filter((request) => requests.indexOf(request) > requests.indexOf(first))).toEqual([]);
    expect(mustWait(first.claim)).toBe(true);
  }
  for (const claim of [ALONE, SHARED, TWO])
    expect(queue.admits({ ...claim, blocking: true })).toBe(!first && !mustWait(claim));
  // One that must not wait may arrive together with others that have a limit.
  const free = !writer && limited.length < 2 && arriving.every((request) => request.claim.limit !== undefined);
  expect(queue.admits({ ...TWO, blocking: false })).toBe(!first && free);

  for (const { state, abort } of requests) expect(listenersOf(abort.signal)).toBe(state === 'waiting' ? 1 : 0);
  expect(listenersOf(closing.signal)).toBe(first ? 1 : 0);
  expect(isIdle).toBe(inside.length === 0);
}

type Step =
  | { readonly kind: 'enter'; readonly claim: Claim; readonly aborted: boolean; readonly blocking: boolean }
  | { readonly kind: 'queued' | 'end' | 'abort'; readonly which: number };

const claim = fc.constantFrom(ALONE, SHARED, TWO);
const entering = fc.record({
  kind: fc.constant('enter' as const),
  claim,
  aborted: fc.boolean(),
  blocking: fc.boolean(),
});
const going = fc.record({
  kind: fc.constantFrom('queued' as const, 'end' as const, 'abort' as const),
  which: fc.nat(),
});
const sequences = fc.array(fc.oneof<[fc.Arbitrary<Step>, fc.Arbitrary<Step>]>(entering, going), { maxLength: 60 });

async function take(driven: Driven, step: Step): Promise<void> {
  if (step.kind === 'enter') {
    // One that must not wait enters only if it is admitted.
    const blocking = step.blocking || !driven.queue.admits({ ...step.claim, blocking: false });
    const admits = driven.queue.admits({ ...step.claim, blocking });
    const request = await driven.enter(step.claim, { abort: step.aborted, blocking });
    if (!step.aborted) expect(request.isInside).toBe(admits);
    return;
  }
  const request = driven.requests[step.which % driven.requests.length];
  if (request) await driven[step.kind](request);
}

describe('a local queue', () => {
  test('keeps its guarantees for any sequence of steps', async () => {
    await fc.assert(
      fc.asyncProperty(sequences, async (steps) => {
        const driven = new Driven();
        for (const step of steps) {
          await take(driven, step);
          check(driven);
        }
        // Each remaining request gets its turn once all requests before it have ended.
        for (const request of driven.requests) {
          expect(request.state).not.toBe('waiting');
          await driven.end(request);
          check(driven);
        }
        expect(driven.isIdle).toBe(true);
      }),
      { numRuns: 300 },
    );
  });

  test('admits readers together, and a writer as soon as the readers have entries in etcd’s queue', async () => {
    const driven = new Driven();
    const [one, other] = [await driven.enter(SHARED), await driven.enter(SHARED)];
    const writer = await driven.enter(ALONE);
    await driven.enter(SHARED);
    expect(driven.states()).toEqual(['arriving', 'arriving', 'waiting', 'waiting']);
    await driven.queued(one);
    expect(writer.state).toBe('waiting');
    await driven.queued(other);
    expect(driven.states()).toEqual(['queued', 'queued', 'arriving', 'waiting']);
    await driven.queued(writer);
    await driven.end(one);
    expect(driven.states()).toEqual(['ended', 'queued', 'queued', 'waiting']);
    await driven.end(writer);
    expect(driven.states()).toEqual(['ended', 'queued', 'ended', 'arriving']);
  });

  test('admits readers when the writer before them gives up', async () => {
    const driven = new Driven();
    await driven.enter(SHARED);
    const writer = await driven.enter(ALONE);
    await driven.enter(SHARED);
    await driven.abort(writer);
    expect(driven.states()).toEqual(['arriving', 'aborted', 'arriving']);
  });

  test('admits a writer when the reader before it ends without an entry in etcd’s queue', async () => {
    const driven = new Driven();
    const reader = await driven.enter(SHARED);
    const writer = await driven.enter(ALONE);
    await driven.end(reader);
    expect(writer.state).toBe('arriving');
  });

  test('counts the end of a turn only once', async () => {
    const driven = new Driven();
    const first = await driven.enter(ALONE);
    await driven.enter(ALONE);
    const third = await driven.enter(ALONE);
    await driven.end(first);
    await driven.end(first);
    await driven.queued(first);
    expect(third.state).toBe('waiting');
  });

  test('returns the state that the earliest turn reports', async () => {
    const driven = new Driven();
    expect(driven.queue.state()).toEqual({ reason: 'held' });
    const [first, second] = [await driven.enter(SHARED), await driven.enter(SHARED)];
    const holders = [1, 2].map((i) => holderOf('/k', { key: `/k/${i}`, value: `v${i}`, ttl: i }));
    for (const [i, { turn }] of [first, second].entries())
      if (turn) turn.state = () => ({ reason: 'held', holder: holders[i] });
    expect(driven.queue.state()).toEqual({ reason: 'held', holder: holders[0] });
    await driven.end(first);
    expect(driven.queue.state()).toEqual({ reason: 'held', holder: holders[1] });
  });
});

describe('a client that is closed', () => {
  test('rejects the requests that wait in its queues, in order, and rejects later requests', async () => {
    const driven = new Driven();
    const { queue, closing } = driven;
    await driven.enter(ALONE);
    const reasons: string[] = [];
    const ended = [1, 2, 3].map((which) =>
      queue.enter({ ...ALONE, ...limits() }).catch((reason) => reasons.push(which + reason)),
    );
    closing.abort(' closed');
    await Promise.all(ended);
    expect(reasons).toEqual(['1 closed', '2 closed', '3 closed']);
    expect(listenersOf(closing.signal)).toBe(0);
    await expect(queue.enter({ ...SHARED, ...limits() })).rejects.toBe(' closed');
  });
});

describe('the local queue of a lock', () => {
  test('exists once for each client and path', () => {
    const [keys, other] = [new MemoryStore(), new MemoryStore()];
    const queue = localQueue(keys.store, '/a');
    expect(localQueue(keys.store, '/a')).toBe(queue);
    expect(localQueue(keys.store, '/b')).not.toBe(queue);
    expect(localQueue(other.store, '/a')).not.toBe(queue);
  });

  test('is kept while a request has a turn, and dropped after the last one', async () => {
    const keys = new MemoryStore();
    const queue = localQueue(keys.store, '/a');
    const first = await queue.enter({ ...ALONE, ...limits() });
    const waiting = queue.enter({ ...ALONE, ...limits() });
    first.end();
    const second = await waiting;
    expect(localQueue(keys.store, '/a')).toBe(queue);
    second.end();
    expect(localQueue(keys.store, '/a')).not.toBe(queue);
  });

  test('is dropped when no request ever got a turn', async () => {
    const keys = new MemoryStore();
    const queue = localQueue(keys.store, '/a');
    const signal = AbortSignal.abort('reason');
    await expect(queue.enter({ ...ALONE, ...limits(signal) })).rejects.toBe('reason');
    expect(localQueue(keys.store, '/a')).not.toBe(queue);
  });
});
