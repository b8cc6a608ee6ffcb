import fc from 'fast-check';
import { expect, test } from 'vitest';
import { Line, type Linked } from '../../src/manager/local-queue.ts';

class Person implements Linked<Person> {
  before: Person | undefined = undefined;
  behind: Person | undefined = undefined;
}

/** All in the line, from the first one on. */
function among({ first }: Line<Person>): Person[] {
  const all: Person[] = [];
  for (let one = first; one; one = one.behind) all.push(one);
  return all;
}

const steps = fc.array(fc.oneof(fc.constant('add' as const), fc.nat()), { maxLength: 60 });

test('a line keeps its order, whoever leaves', () => {
  fc.assert(
    fc.property(steps, (taken) => {
      const line = new Line<Person>();
      const expected: Person[] = [];
      for (const step of taken) {
        if (step === 'add') {
          const next = new Person();
          line.add(next);
          expected.push(next);
        } else {
          const [leaving] = expected.splice(step % (expected.length || 1), 1);
          if (!leaving) continue;
          line.remove(leaving);
          expect(leaving).toEqual(new Person());
        }
        // By identity: those that stand in a line would be compared with all around them.
        expect(among(line).map((one) => expected.indexOf(one))).toEqual([...expected.keys()]);
        expect(expected.map(({ before }) => before && expected.indexOf(before))).toEqual(
          expected.map((_, i) => (i === 0 ? undefined : i - 1)),
        );
      }
    }),
  );
});
