import { expect, onTestFinished, test } from 'vitest';
import { type Exchange as Recorded, type Scenario, scenarios } from '../../compat/transcript.ts';
import type { Store } from '../../src/server/store/store.ts';
import { ManualClock } from '../support/manual-clock.ts';
import { serveOpenly } from '../support/open-server.ts';
import { Asked, type Exchange } from './differential/exchange.ts';
import { mappedBody } from './differential/mapping.ts';

/** Milliseconds after each half second at which the recorded etcd checked for expired keys. Derived from the events it sent. */
const PHASE = 247;

/** Keys created in the recorded etcd before, by index. All but `/spin` were deleted again, and left empty directories. */
const BEFORE = [
  [4, '/_locks/x/entry'],
  [7, '/_locks/w/entry'],
  [1108, '/spin'],
  [1115, '/_locks/bench/entry'],
  [8372, '/_locks/floor/entry'],
] as const;

// Sends the recorded requests of python-etcd again, at the recorded times of day. The store starts at the recorded index,
// so indexes, and the names made from them, must be the same too.
test('the embedded server answers the recorded requests of python-etcd as etcd did', async () => {
  const clock = new ManualClock(startOf(scenarios[0] as Scenario, 0) - PHASE);
  const etcd = await serveOpenly(clock);
  prepare(etcd.store, 26_171);
  const asked = new Asked(etcd.url);
  onTestFinished(() => asked.close());
  let answered = 0;
  for (const scenario of scenarios) {
    const start = startOf(scenario, clock.now() + PHASE) - PHASE;
    const answers: (readonly [Recorded, Exchange])[] = [];
    for (const exchange of scenario.exchanges.toSorted((a, b) => a.at - b.at)) {
      clock.advance(Math.max(0, start + exchange.at * 1000 - clock.now()));
      const { method, path: target, body: form } = exchange.request;
      const answer = await asked.ask({ method, target, ...(form === null ? {} : { form }) });
      answers.push([exchange, answer]);
      if (!target.includes('wait=true')) await answer.whole();
    }
    for (const [recorded, answer] of answers) {
      const { method, path } = recorded.request;
      expect(await comparable(answer), `${scenario.scenario}: ${method} ${path}`).toEqual(comparableRecord(recorded));
      answered += 1;
    }
  }
  expect(answered).toBe(205);
});

/** Brings a store to the state and index of the recorded one. */
function prepare(store: Store, index: number): void {
  const fill = (to: number) => {
    while (store.index < to) store.set('/filler', '', {});
  };
  for (const [madeAt, key] of BEFORE) {
    fill(madeAt - 1);
    store.set(key, '1100', {});
    if (key !== '/spin') store.delete(key, {});
  }
  fill(index - 1);
  store.delete('/filler', {});
}

/**
 * Returns when a scenario started, in milliseconds since the epoch. The first answer with a TTL shows it: its expiry minus
 * the TTL is the time of the request. Without a TTL, the scenario started just after `before`.
 */
function startOf({ exchanges }: Scenario, before: number): number {
  for (const { at, request, response } of exchanges) {
    const ttl = /\bttl=(\d+)/.exec(request.body ?? '')?.[1];
    const expiration = /"expiration":"([^"]+)"/.exec(JSON.stringify(response.body))?.[1];
    if (ttl !== undefined && expiration !== undefined)
      return Date.parse(expiration) - Number(ttl) * 1000 - Math.round(at * 1000);
  }
  return before + 45;
}

async function comparable(answer: Exchange) {
  const { 'content-type': type, 'x-etcd-index': index } = answer.headers;
  return { status: answer.status, type, index, body: mappedBody(await answer.whole(), false, 10) };
}

function comparableRecord({ response: { status, headers, body } }: Recorded) {
  const { 'Content-Type': type, 'X-Etcd-Index': index } = headers;
  const text = typeof body === 'string' ? body : body === null ? '' : `${JSON.stringify(body)}\n`;
  return { status, type, index, body: mappedBody(text, false, 10) };
}
