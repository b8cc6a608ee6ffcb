import { describe, expect, test } from 'vitest';
import { freshName, queueOn } from '../support/locks.ts';
import { useManager } from '../support/managers.ts';
import { useOneAnswerProxy } from '../support/one-answer-proxy.ts';

describe('behind a proxy that ignores requests sent before the one before them is answered', () => {
  test('two listings are sent behind appends, all others on their own', async () => {
    const proxy = await useOneAnswerProxy();
    const manager = useManager({}, { endpoints: proxy.url });
    const name = freshName();
    for (let turn = 0; turn < 6; turn += 1) await manager.request(name, () => {});
    expect(proxy.ignored).toEqual(Array(2).fill(`GET /v2/keys/_locks/${name}?recursive=true`));
    expect(await queueOn(name)).toEqual([]);
  });
});
