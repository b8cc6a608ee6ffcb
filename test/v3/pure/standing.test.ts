import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import type { Standing } from '../../../src/recipe/store.ts';
import type { Json } from '../../../src/v3/gateway/messages.ts';
import { base64 } from '../../support/gateway.ts';
import { ScriptedGateway, type StoredKey } from '../../support/scripted-gateway.ts';

const PATH = '/_locks/job';

beforeEach(() => void vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'performance'] }));
afterEach(() => void vi.useRealTimers());

const keyAt = (revision: bigint, value = `holder ${revision}`): StoredKey => ({
  key: `${PATH}/${revision}`,
  value,
  create_revision: String(revision),
  mod_revision: String(revision),
});

/** What etcd sends when a key was deleted. */
const deletionOf = ({ key }: StoredKey): string =>
  JSON.stringify({ result: { events: [{ type: 'DELETE', kv: { key: base64(key), mod_revision: '99' } }] } });

/** Returns whether the wait has ended, without any time passing. */
async function hasEnded(waiting: Promise<unknown>): Promise<boolean> {
  let ended = false;
  void waiting.then(() => {
    ended = true;
  });
  await vi.advanceTimersByTimeAsync(0);
  return ended;
}

/** A waiter behind other entries, and its wait. */
async function setUp(value = 'mine', ahead = [keyAt(4n)]) {
  const gateway = new ScriptedGateway();
  gateway.ahead = ahead;
  const ticket = gateway.client().store.queue('job').ticket(value);
  await ticket.enter(30, { failed: 0, keepAlive: true });
  const stand = () => ticket.standing({});
  const wait = ({ behind }: Standing) => ticket.changed(behind ?? expect.unreachable(), {});
  const latest = () => gateway.watches.at(-1) ?? expect.unreachable();
  const watched = (): Json => latest().messages[0]?.['create_request'] as Json;
  return { gateway, stand, wait, latest, watched };
}

describe('the watch of a waiter begins at the revision after its standing', () => {
  test('which is that of the append, at first', async () => {
    const { gateway, stand, wait, watched } = await setUp();
    const standing = await stand();
    expect(gateway.paths).toEqual(['/lease/grant', '/kv/txn']);
    // Other clients write between the append and the watch.
    gateway.revision += 7n;
    void wait(standing);
    expect(watched()).toEqual({ key: base64(`${PATH}/4`), start_revision: '12', filters: ['NOPUT'] });
  });

  test('which is that of the last read, later', async () => {
    const { gateway, stand, wait, latest, watched } = await setUp();
    const first = wait(await stand());
    latest().say(deletionOf(keyAt(4n)));
    expect(await first).toBe(true);
    gateway.ahead = [keyAt(3n)];
    gateway.revision = 40n;
    const standing = await stand();
    gateway.revision += 7n;
    void wait(standing);
    expect(watched()).toEqual({ key: base64(`${PATH}/3`), start_revision: '41', filters: ['NOPUT'] });
  });
});

describe('the wait of a waiter', () => {
  test('ends by the deletion of the entry before its own, without any further request', async () => {
    const { gateway, stand, wait, latest } = await setUp();
    const waiting = wait(await stand());
    const asked = gateway.paths.length;
    latest().say(deletionOf(keyAt(4n)));
    expect(await waiting).toBe(true);
    expect(gateway.paths).toHaveLength(asked);
    expect(gateway.watches).toHaveLength(1);
  });

  test('ends, with a limit, once so many entries before its own are deleted that it may hold the lock', async () => {
    const limited = (revision: bigint) => keyAt(revision, `limit:2:${revision}`);
    const ahead = [limited(7n), limited(5n), limited(4n)];
    const { gateway, stand, wait, latest, watched } = await setUp('limit:2:mine', ahead);
    const waiting = wait(await stand());
    expect(watched()).toMatchObject({ key: base64(`${PATH}/`), start_revision: '12' });
    const asked = gateway.paths.length;
    latest().say(deletionOf(keyAt(3n)));
    latest().say(deletionOf(limited(5n)));
    latest().say(deletionOf(limited(5n)));
    expect(await hasEnded(waiting)).toBe(false);
    latest().say(deletionOf(limited(7n)));
    expect(await hasEnded(waiting)).toBe(true);
    expect(gateway.paths).toHaveLength(asked);
  });

  test('ends within a third of the TTL if the watch is silent, so that the queue is read', async () => {
    const { stand, wait } = await setUp();
    let ended = false;
    void wait(await stand()).then(() => {
      ended = true;
    });
    // 10 seconds, less the time for three reads.
    await vi.advanceTimersByTimeAsync(8120);
    expect(ended).toBe(false);
    await vi.advanceTimersByTimeAsync(10);
    expect(ended).toBe(true);
  });
});
