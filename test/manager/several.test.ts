import fc from 'fast-check';
import { expect, test } from 'vitest';
import { LockManager } from '../../src/manager/manager.ts';
import { SharedMemory } from '../suites/stores/memory-client.ts';
import { memoryStoreClient } from '../suites/stores/memory-store-client.ts';

const NAMES = ['a', 'b', 'c', 'd', 'e'];
const CONTENDERS = 8;
const SCHEDULES = 150;

/** What one process asks for, and how many turns of the event loop each of its requests to the store takes, over and over. */
const contender = fc.record({
  names: fc.shuffledSubarray(NAMES, { minLength: 1 }),
  mode: fc.constantFrom('exclusive', 'exclusive', 'shared'),
  delays: fc.array(fc.nat(3), { minLength: 1, maxLength: 7 }),
});
type Contender = typeof contender extends fc.Arbitrary<infer T> ? T : never;

const turns = async (count: number): Promise<void> => {
  for (let left = count; left > 0; left -= 1) await new Promise(setImmediate);
};

/** Lets all contenders run at once. Resolves to the names that two of them held at the same time. */
async function run(contenders: readonly Contender[]): Promise<readonly string[]> {
  const memory = new SharedMemory();
  const inside = new Map<string, readonly string[]>(NAMES.map((name) => [name, []]));
  const overlaps: string[] = [];
  await Promise.all(
    contenders.map(async ({ names, mode, delays }) => {
      const client = memoryStoreClient(memory);
      let calls = 0;
      const delay = () => turns(delays[calls++ % delays.length] ?? 0);
      client.intercept(async ({ send }) => {
        await delay();
        return send();
      });
      await new LockManager(client).request(names, { mode }, async () => {
        for (const name of names) {
          const modes = [...(inside.get(name) ?? []), mode];
          inside.set(name, modes);
          if (modes.length > 1 && modes.includes('exclusive')) overlaps.push(name);
        }
        await delay();
        for (const name of names) inside.set(name, inside.get(name)?.slice(1) ?? []);
      });
      await client.close();
    }),
  );
  expect(memory.entries()).toEqual([]);
  return overlaps;
}

test('locks are acquired in the order of their names as bytes, in whatever order the caller names them', async () => {
  for (const names of [
    ['b', 'a', 'c'],
    ['\uff5e', '\u{1f512}', 'z'],
  ]) {
    const memory = new SharedMemory();
    const client = memoryStoreClient(memory);
    const held = await new LockManager(client).acquire(names);
    const taken = memory.entries().map(({ path }) => path.slice(path.lastIndexOf('/') + 1));
    expect(taken).toEqual([...names].sort((one, other) => Buffer.compare(Buffer.from(one), Buffer.from(other))));
    await held.release();
    await client.close();
  }
});

/** Far longer than any schedule takes that does not stop. */
const DEADLOCK_AFTER = 20_000;

test(`requests for several locks neither deadlock nor overlap, in ${SCHEDULES} random schedules`, async () => {
  const contenders = fc.array(contender, { minLength: CONTENDERS, maxLength: CONTENDERS });
  const property = fc.asyncProperty(contenders, async (all) => {
    expect(await run(all)).toEqual([]);
  });
  await fc.assert(property, { numRuns: SCHEDULES, timeout: DEADLOCK_AFTER });
}, 600_000);
