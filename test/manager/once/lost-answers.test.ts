import { expect, onTestFinished, test } from 'vitest';
import { TickAttempt, type TickJob, type WaitLimits } from '../../../src/manager/once/attempt.ts';
import { scheduleOf } from '../../../src/manager/once/schedule.ts';
import { markerKey } from '../../../src/recipe/entries/marker-key.ts';
import { gate } from '../../support/gate.ts';
import { escaped, freshName, queueOn, raw, useClient, useProxy } from '../../support/locks.ts';
import { ManualClock } from '../../support/manual-clock.ts';
import { useOnce } from '../../support/once.ts';
import { until } from '../../support/until.ts';

test('the time of a slow first read is part of the timeout', async () => {
  const [proxy, name, answer] = [await useProxy(), freshName(), gate()];
  const { store } = useClient({ endpoints: proxy.url });
  proxy.intercept(({ path }) => (decodeURIComponent(path).includes(name) ? { answerAfter: answer.opened } : undefined));
  const limits: WaitLimits[] = [];
  const lock: TickJob['lock'] = async (limit) => void limits.push(limit);
  const schedule = scheduleOf('1d', undefined);
  const job = { store, name, label: undefined, schedule, clock: new ManualClock(), lock };
  const start = performance.now();
  const ended = new TickAttempt(job, schedule.current(job.clock.now()), { timeout: 60 }).run(() => {});
  await until(
    () => performance.now() - start,
    (milliseconds) => milliseconds > 1000,
  );
  answer.open();
  await ended;
  const [limit] = limits;
  expect(limit?.timeout).toBeLessThanOrEqual(59);
  expect(limit?.timeout).toBeGreaterThan(0);
});

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
