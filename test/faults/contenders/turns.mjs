// What every Node contender does, whichever way it locks: ask, hold, do one guarded step, release, and again, until told to
// quit by a line on stdin. Its orders come in the environment, its story goes to stdout, a line of JSON an event.
import { createInterface } from 'node:readline';
import { setTimeout as sleep } from 'node:timers/promises';
import { moment } from '../../support/stalls/stalls.mjs';

export const orders = JSON.parse(process.env.CONTENDER);

export function tell(kind, more) {
  process.stdout.write(`${JSON.stringify({ ...moment(), who: orders.who, kind, ...more })}\n`);
}

const quit = new AbortController();
const input = createInterface({ input: process.stdin });
input.once('line', () => {
  quit.abort();
  input.close();
  process.stdin.destroy();
});
// Whoever started this one has died.
process.stdin.once('end', () => process.exit(1));

/** Takes turns until told to quit. A turn that fails has told so. */
export async function takeTurns(turn) {
  while (!quit.signal.aborted) {
    await turn();
    await sleep(Math.random() * 150, undefined, { signal: quit.signal }).catch(() => {});
  }
}

let steps = 0;

/**
 * Adds to both sets under the lock; `check` throws where it is not held any more, but who is trusting does not look.
 * Resolves also where the fence refused.
 */
export async function guardedStep(token, check) {
  steps += 1;
  const addition = `${orders.who} ${steps}`;
  const fenced = await ask('GET', 'fenced', { token });
  const plain = await ask('GET', 'plain', { token });
  await sleep(holdTime());
  if (!orders.trusting) check();
  if (fenced !== undefined) await ask('POST', 'fenced', { token, of: fenced, addition });
  await ask('POST', 'plain', { token, of: plain, addition });
}

/** Milliseconds: mostly short, and now and then, where that is ordered, long enough for an outage to fall into it. */
const holdTime = () => {
  if (orders.longHold && Math.random() < 0.15) return orders.longHold * 1000 * (0.7 + 0.3 * Math.random());
  return 20 + Math.random() * 230;
};

async function ask(method, set, query) {
  const answer = await fetch(`${orders.resource}/${orders.lock}/${set}?${new URLSearchParams(query)}`, { method });
  const text = await answer.text();
  if (answer.ok) return text;
  if (answer.status !== 409) throw new Error(`the resource answered ${answer.status}: ${text}`);
  tell('refused', { token: query.token });
  return undefined;
}
