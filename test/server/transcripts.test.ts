import { expect, onTestFinished, test } from 'vitest';
import { type Exchange as Recorded, type Scenario, scenarios } from '../../compat/transcript.ts';
import { ManualClock } from '../support/manual-clock.ts';
import { serveOpenly } from '../support/open-server.ts';
import { Asked, type Exchange } from './differential/exchange.ts';
import { mappedBody } from './differential/mapping.ts';

const [first] = scenarios as readonly [Scenario, ...Scenario[]];
const PHASE = phaseOf(scenarios);

// Sends the recorded requests of python-etcd again, at the recorded times of day. Both stores were empty, so indexes,
// and the names made from them, must be the same too.
test('the embedded server answers the recorded requests of python-etcd as etcd did', async () => {
  const clock = new ManualClock(Date.parse(first.started) - PHASE);
  const etcd = await serveOpenly(clock);
  const asked = new Asked(etcd.url);
  onTestFinished(() => asked.close());
  let answered = 0;
  for (const scenario of scenarios) {
    const start = Date.parse(scenario.started) - PHASE;
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
  expect(answered).toBe(scenarios.flatMap(({ exchanges }) => exchanges).length);
});

/** Milliseconds after each half second at which the recorded etcd removed expired keys. Its event of an expiry shows it. */
function phaseOf(recorded: readonly Scenario[]): number {
  for (const { started, exchanges } of recorded)
    for (const { done, response } of exchanges)
      if (JSON.stringify(response.body).includes('"action":"expire"'))
        return Math.round((Date.parse(started) + done * 1000) % 500);
  throw new Error('no recorded answer has an expiry');
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
