import { describe, expect, test } from 'vitest';
import { freshName, queueOn } from '../../support/locks.ts';
import { useManager } from '../../support/managers.ts';
import { useOneAnswerProxy } from '../../support/one-answer-proxy.ts';

/** Number of times that each client acquires the lock. */
const TURNS = 5;

describe('behind a proxy that ignores a request sent before the previous one is answered', () => {
  test('a client stops pipelining listings with appends after two of them were ignored', async () => {
    const proxy = await useOneAnswerProxy();
    const manager = useManager({}, { endpoints: proxy.url });
    const name = freshName();
    for (let turn = 0; turn < 6; turn += 1) await manager.request(name, () => {});
    expect(proxy.ignored).toEqual(Array(2).fill(`GET /v2/keys/_locks/${name}?recursive=true`));
    expect(await queueOn(name)).toEqual([]);
  });
});

describe('behind a proxy that closes each connection after one answer without a `connection: close` header', () => {
  test('four clients take turns: no append is lost or repeated, and every entry is removed', async () => {
    const proxy = await useOneAnswerProxy({ closes: true });
    const name = freshName();
    const managers = Array.from({ length: 4 }, () => useManager({ ttl: 6, timeout: 12 }, { endpoints: proxy.url }));
    const tokens: bigint[] = [];
    let holders = 0;
    const takeTurns = async (manager: (typeof managers)[number]): Promise<void> => {
      for (let turn = 0; turn < TURNS; turn += 1)
        await manager.request(name, async ({ fencingToken }) => {
          holders += 1;
          expect(holders).toBe(1);
          tokens.push(fencingToken);
          await new Promise(setImmediate);
          holders -= 1;
        });
    };
    await Promise.all(managers.map(takeTurns));
    expect(tokens).toHaveLength(4 * TURNS);
    expect(tokens).toEqual([...new Set(tokens)].sort((a, b) => (a < b ? -1 : 1)));
    expect(await queueOn(name)).toEqual([]);
    const isAppend = (request: string): boolean => request.startsWith('POST');
    expect(proxy.passed.filter(isAppend)).toHaveLength(4 * TURNS);
    expect(proxy.ignored.filter(isAppend)).toEqual([]);
  });
});
