import fc from 'fast-check';
import { expect, test } from 'vitest';
import { Line, type Linked } from '../../../src/manager/local-queue.ts';

class Item implements Linked<Item> {
  before: Item | undefined = undefined;
  behind: Item | undefined = undefined;
}

/** Returns the items of the line, the first one first. */
function itemsOf({ first }: Line<Item>): Item[] {
  const all: Item[] = [];
  for (let one = first; one; one = one.behind) all.push(one);
  return all;
}

const steps = fc.array(fc.oneof(fc.constant('add' as const), fc.nat()), { maxLength: 60 });

test('a line keeps its order when any item is removed', () => {
  fc.assert(
    fc.property(steps, (taken) => {
      const line = new Line<Item>();
      const expected: Item[] = [];
      for (const step of taken) {
        if (step === 'add') {
          const next = new Item();
          line.add(next);
          expected.push(next);
        } else {
          const [leaving] = expected.splice(step % (expected.length || 1), 1);
          if (!leaving) continue;
          line.remove(leaving);
          expect(leaving).toEqual(new Item());
        }
        // Compares by identity: toEqual would follow the links to all the other items.
        expect(itemsOf(line).map((one) => expected.indexOf(one))).toEqual([...expected.keys()]);
        expect(expected.map(({ before }) => before && expected.indexOf(before))).toEqual(
          expected.map((_, i) => (i === 0 ? undefined : i - 1)),
        );
      }
    }),
  );
});
