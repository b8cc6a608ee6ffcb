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

/** A lock prefix no other test uses, since the names are given. */
const freshPrefix = (): string => `/_${freshName()}`;

describe.each(BOTH_WAYS)('held in %s and wanted in %s, the name has one queue', (one, other) => {
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

describe('names that python-etcd breaks on', () => {
  test.each(ESCAPED_HERE)('between two Node clients %s is locked under just that key', async (name) => {
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

  test.each(REFUSED_HERE)('%j, which etcd would clean, is refused', (name) => {
    expect(() => new Lock(useClient(), name)).toThrow(RangeError);
  });
});

// python-etcd counts the keys of the inner lock in the outer queue.
describe('a lock within the directory of another', () => {
  /** Inner names that sort behind the keys of the outer lock. */
  const INNER = ['b', '5', '99999999999999999999'];

  describe.each(BOTH_WAYS)('%s on the inner one, %s on the outer one', (innerSide, outerSide) => {
    test.each(INNER)('a/%s: they are two locks, and each stays exclusive', async (inner) => {
      const outer = freshName();
      const innerHolder = await lockOn(innerSide, python, `${outer}/${inner}`);
      const outerHolder = await lockOn(outerSide, python, outer);
      expect(await innerHolder.acquire({ lockTtl: 60 })).toBe(true);
      expect(await outerHolder.acquire({ blocking: false, lockTtl: 60 })).toBe(true);
      await staysExclusive(outer, outerHolder, innerSide);
      await staysExclusive(`${outer}/${inner}`, innerHolder, outerSide);
    });
  });

  test('an inner name before the digits keeps Python from the outer lock, never two in it', async () => {
    const outer = freshName();
    const inner = await lockOn('Node', python, `${outer}/-b`);
    await inner.acquire({ lockTtl: 60 });
    const [node, other] = [await lockOn('Node', python, outer), await lockOn('Python', python, outer)];
    expect(await node.acquire({ blocking: false, lockTtl: 60 })).toBe(true);
    expect(await other.acquire({ blocking: false, lockTtl: 60 })).toBe(false);
    await node.release();
    expect(await other.acquire({ blocking: false, lockTtl: 60 })).toBe(false);
    // Python is first in the queue, although it does not know: Node stays behind it.
    expect(await node.acquire({ blocking: false, lockTtl: 60 })).toBe(false);
    await other.release();
    expect(await node.acquire({ blocking: false, lockTtl: 60 })).toBe(true);
    await Promise.all([node.release(), inner.release()]);
  });
});

/** Another contender is kept out until the holder releases, then gets in. */
async function staysExclusive(name: string, holder: EitherLock, side: Side): Promise<void> {
  const rival = await lockOn(side, python, name);
  expect(await rival.acquire({ blocking: false, lockTtl: 60 })).toBe(false);
  expect(await holder.isAcquired()).toBe(true);
  await holder.release();
  expect(await rival.acquire({ blocking: false, lockTtl: 60 })).toBe(true);
  await rival.release();
}
