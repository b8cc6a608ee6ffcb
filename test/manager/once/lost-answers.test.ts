import { expect, onTestFinished, test } from 'vitest';
import { markerKey } from '../../../src/recipe/entries/marker-key.ts';
import { escaped, freshName, queueOn, raw, useClient, useProxy } from '../../support/locks.ts';
import { useOnce } from '../../support/once.ts';

test.each(['swallow', 'refuse'] as const)(
  'every other write of the record gets no answer (%s): each tick runs once',
  async (action) => {
    const proxy = await useProxy();
    const name = freshName();
    const path = `/v2/keys${markerKey('/_locks', name)}`;
    onTestFinished(async () => void (await raw('DELETE', escaped(markerKey('/_locks', name)))));
    let isAnswered = true;
    let lost = 0;
    proxy.intercept((request) => {
      if (request.method !== 'PUT' || decodeURIComponent(request.path) !== path) return undefined;
      isAnswered = !isAnswered;
      if (isAnswered) return undefined;
      lost += 1;
      return action === 'swallow' ? { swallow: true } : { refuse: true };
    });
    const { ticks, reports, nextTick } = useOnce(useClient({ endpoints: proxy.url }), name);
    for (let tick = 0; tick < 5; tick += 1) await nextTick();
    expect(reports.map(({ outcome }) => outcome)).toEqual(Array(5).fill('ran'));
    expect(ticks.map(({ missed, previous }) => [missed, previous?.state])).toEqual([
      [undefined, undefined],
      ...Array(4).fill([0, 'ran']),
    ]);
    expect(lost).toBeGreaterThanOrEqual(5);
    expect(await queueOn(name)).toEqual([]);
  },
);
