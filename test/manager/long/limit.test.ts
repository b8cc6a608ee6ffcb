import fc from 'fast-check';
import { expect, test } from 'vitest';
import type { OpenHeld } from '../../../src/manager/held.ts';
import { LockManager } from '../../../src/manager/manager.ts';
import type { HoldOptions } from '../../../src/manager/options.ts';
import { MemoryClient, SharedMemory } from '../../suites/stores/memory-client.ts';

const NAME = 'pool';
const RUNS = 1000;

type Kind = 'limited' | 'exclusive' | 'shared' | 'foreign';

/** One entry in the queue: of a request, or of another client (`foreign`). */
interface Contender {
  readonly kind: Kind;
  state: 'waiting' | 'holding' | 'gone';
  end(): Promise<void>;
}

type Step = { readonly kind: Kind } | { readonly kind: 'end'; readonly which: number };

const step: fc.Arbitrary<Step> = fc.oneof(
  fc.record({ kind: fc.constantFrom<Kind>('limited', 'limited', 'limited', 'exclusive', 'shared', 'foreign') }),
  fc.record({ kind: fc.constant('end' as const), which: fc.nat() }),
);

const optionsOf = (kind: Exclude<Kind, 'foreign'>, limit: number): HoldOptions =>
  kind === 'limited' ? { limit } : { mode: kind };

/** Adds a contender at the end of the queue. */
async function enter(memory: SharedMemory, kind: Kind, limit: number): Promise<Contender> {
  if (kind === 'foreign') {
    const { key } = memory.append(`/${NAME}`, 'foreign', null);
    const contender: Contender = {
      kind,
      state: 'waiting',
      end: async () => {
        memory.remove(key);
        contender.state = 'gone';
      },
    };
    return contender;
  }
  const client = new MemoryClient(memory);
  const abort = new AbortController();
  const before = memory.entries().length;
  let held: OpenHeld | undefined;
  const request = new LockManager(client, { ttl: 3600 }).acquire(NAME, {
    ...optionsOf(kind, limit),
    ifAvailable: false,
    signal: abort.signal,
  });
  const contender: Contender = {
    kind,
    state: 'waiting',
    end: async () => {
      abort.abort('gives up');
      await request.catch(() => {});
      await held?.release();
      await client.close();
      contender.state = 'gone';
    },
  };
  request.then(
    (hold) => {
      held = hold;
      contender.state = 'holding';
    },
    () => {},
  );
  await turnsUntil(() => memory.entries().length > before);
  return contender;
}

/** The holders by the rule's description, for contenders in the order of the queue. Another client's entry holds when it is first. */
function expectedHolders(inOrder: readonly Contender[], limit: number): readonly Contender[] {
  const holders: Contender[] = [];
  for (const one of inOrder) {
    const first = holders[0]?.kind ?? one.kind;
    const room = { limited: limit, shared: Number.POSITIVE_INFINITY, exclusive: 1, foreign: 1 }[first];
    if (one.kind !== first || holders.length === room) break;
    holders.push(one);
  }
  return holders;
}

/** Resolves once the condition holds. Requests to the memory take a few turns of the event loop. */
async function turnsUntil(condition: () => boolean): Promise<void> {
  for (let turns = 0; turns < 1000 && !condition(); turns += 1) await new Promise(setImmediate);
}

test(`as many hold a lock with a limit as possible, in order, and never more, in ${RUNS} random schedules`, async () => {
  const property = fc.asyncProperty(
    fc.integer({ min: 1, max: 4 }),
    fc.array(step, { maxLength: 30 }),
    async (limit, steps) => {
      const memory = new SharedMemory();
      let queue: readonly Contender[] = [];
      const holding = () => queue.filter(({ state }) => state === 'holding');
      const expected = () => expectedHolders(queue, limit).filter(({ kind }) => kind !== 'foreign');
      const check = async (): Promise<void> => {
        await turnsUntil(() => holding().length >= expected().length);
        expect(holding().map((one) => queue.indexOf(one))).toEqual(expected().map((one) => queue.indexOf(one)));
      };
      for (const one of steps) {
        if (one.kind === 'end') await queue[one.which % queue.length]?.end();
        else queue = [...queue, await enter(memory, one.kind, limit)];
        queue = queue.filter(({ state }) => state !== 'gone');
        await check();
      }
      for (; queue.length > 0; queue = queue.slice(1)) {
        await check();
        await queue[0]?.end();
      }
      expect(memory.entries()).toEqual([]);
    },
  );
  await fc.assert(property, { numRuns: RUNS });
}, 600_000);
