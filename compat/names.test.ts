import { afterAll, beforeAll, describe, expect, inject, test } from 'vitest';
import { Lock } from '../src/index.ts';
import { entriesIn, freshName, untilEntries, useClient } from '../test/support/locks.ts';
import { type Python, startPython } from './python.ts';
import { BOTH_WAYS, directoryOf, type EitherLock, lockOn, type Side } from './sides.ts';

// docs/python-etcd-lock.md, "Names that python-etcd can and cannot lock".
const SAME_FROM_BOTH = [
  'with space',
  'umläut',
  '中文',
  'a/b/c',
  'dots.and-dashes_~',
  'plus+sign',
  "quote'",
  'semi;colon',
  'at@colon:eq=amp&',
  'back\\slash',
  '[x]{y}|^`<>"',
];
const ESCAPED_HERE = ['q?x=1', 'hash#tag', 'percent%41', 'a%2Fb', 'a/100%'];
const REFUSED_HERE = ['/lead', 'trail/', 'a//b', '.', '..', 'a/../b', ''];

let python: Python;

beforeAll(async () => {
  python = await startPython(inject('etcd'));
});

afterAll(() => python.stop());

/** A lock prefix no other test uses, since the lock names are fixed. */
const freshPrefix = (): string => `/_locks/${freshName()}`;

describe.each(BOTH_WAYS)('a %s holder and a %s waiter share one queue for the name', (one, other) => {
  test.each(SAME_FROM_BOTH)('%s', async (name) => {
    const prefix = freshPrefix();
    const holder = await lockOn(one, python, name, prefix);
    const second = await lockOn(other, python, name, prefix);
    expect(await holder.acquire({ lockTtl: 60 })).toBe(true);
    const [held] = await entriesIn(`${prefix}/${name}`);
    expect(await holder.state()).toMatchObject({ uuid: held?.value, lockKey: held?.key });
    expect(await second.contenders()).toEqual([{ key: held?.key, value: held?.value }]);

    expect(await second.acquire({ blocking: false, lockTtl: 60 })).toBe(false);
    const { uuid, lockKey } = await second.state();
    expect(directoryOf(lockKey ?? '')).toBe(`${prefix}/${name}`);
    expect((await holder.contenders())[1]).toEqual({ key: lockKey, value: uuid });

    await holder.release();
    expect(await second.acquire({ blocking: false, lockTtl: 60 })).toBe(true);
    await second.release();
    expect(await entriesIn(`${prefix}/${name}`)).toEqual([]);
  });
});

describe('names that break python-etcd', () => {
  test.each(ESCAPED_HERE)('two Node clients lock %s under exactly that key', async (name) => {
    const prefix = freshPrefix();
    const a = new Lock(useClient({ lockPrefix: prefix }), name);
    const b = new Lock(useClient({ lockPrefix: prefix }), name);
    expect(await a.acquire({ lockTtl: 60 })).toBe(true);
    expect(directoryOf(a.lockKey)).toBe(`${prefix}/${name}`);
    const waiting = b.acquire({ lockTtl: 60 });
    expect(await untilEntries(`${prefix}/${name}`, 2)).toMatchObject([
      { key: a.lockKey, value: a.uuid },
      { value: b.uuid },
    ]);
    await a.release();
    expect(await waiting).toBe(true);
    await b.release();
    expect(await entriesIn(`${prefix}/${name}`)).toEqual([]);
  });

  test.each(REFUSED_HERE)('the constructor rejects %j, which etcd would normalize', (name) => {
    expect(() => new Lock(useClient(), name)).toThrow(RangeError);
  });
});

// python-etcd counts the keys of the inner lock in the outer queue.
describe('a lock within the directory of another', () => {
  /** Inner names that sort after the keys of the outer lock. */
  const INNER = ['b', '5', '99999999999999999999'];

  describe.each(BOTH_WAYS)(
    'a %s holder of the inner lock and a %s holder of the outer lock',
    (innerSide, outerSide) => {
      test.each(INNER)('both hold at once, and each lock stays exclusive, with the inner lock a/%s', async (inner) => {
        const outer = freshName();
        const innerHolder = await lockOn(innerSide, python, `${outer}/${inner}`);
        const outerHolder = await lockOn(outerSide, python, outer);
        expect(await innerHolder.acquire({ lockTtl: 60 })).toBe(true);
        expect(await outerHolder.acquire({ blocking: false, lockTtl: 60 })).toBe(true);
        await staysExclusive(outer, outerHolder, innerSide);
        await staysExclusive(`${outer}/${inner}`, innerHolder, outerSide);
      });
    },
  );

  test('an inner name that sorts before the digits blocks Python from the outer lock, which stays exclusive', async () => {
    const outer = freshName();
    const inner = await lockOn('Node', python, `${outer}/-b`);
    await inner.acquire({ lockTtl: 60 });
    const [node, other] = [await lockOn('Node', python, outer), await lockOn('Python', python, outer)];
    expect(await node.acquire({ blocking: false, lockTtl: 60 })).toBe(true);
    expect(await other.acquire({ blocking: false, lockTtl: 60 })).toBe(false);
    await node.release();
    expect(await other.acquire({ blocking: false, lockTtl: 60 })).toBe(false);
    // Python's entry is first, although Python does not recognize that: Node waits behind it.
    expect(await node.acquire({ blocking: false, lockTtl: 60 })).toBe(false);
    await other.release();
    expect(await node.acquire({ blocking: false, lockTtl: 60 })).toBe(true);
    await Promise.all([node.release(), inner.release()]);
  });
});

/** Expects that another contender gets the lock only after the holder has released it. */
async function staysExclusive(name: string, holder: EitherLock, side: Side): Promise<void> {
  const rival = await lockOn(side, python, name);
  expect(await rival.acquire({ blocking: false, lockTtl: 60 })).toBe(false);
  expect(await holder.isAcquired()).toBe(true);
  await holder.release();
  expect(await rival.acquire({ blocking: false, lockTtl: 60 })).toBe(true);
  await rival.release();
}
