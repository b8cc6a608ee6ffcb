// The loop of every Node contender: request the lock, hold it, do one guarded step, release, and repeat until a line on stdin
// asks it to quit. Its orders come in the environment; its events go to stdout, one line of JSON each.
import { createInterface } from 'node:readline';
import { setTimeout as sleep } from 'node:timers/promises';
import { moment } from '../../support/stalls/stalls.mjs';

export const orders = JSON.parse(process.env.CONTENDER);

export function tell(kind, more) {
  process.stdout.write(`${JSON.stringify({ ...moment(), who: orders.who, kind, ...more })}\n`);
}

/** Milliseconds between two reports of stalls. */
const REPORT_EVERY = 500;
/** Milliseconds: shorter stalls are not reported. */
const SHORTEST_STALL = 50;

let reported = moment();

function reportStall() {
  const to = moment();
  const from = reported;
  reported = to;
  const stalled = to.stalled - from.stalled;
  if (stalled >= SHORTEST_STALL) tell('stalled', { from: from.at, to: to.at, stalled });
}

setInterval(reportStall, REPORT_EVERY).unref();

const quit = new AbortController();
const input = createInterface({ input: process.stdin });
input.once('line', () => {
  quit.abort();
  input.close();
  process.stdin.destroy();
});
// The parent process has died.
process.stdin.once('end', () => process.exit(1));

/** Repeats `turn`, which reports its own failures, until the process is asked to quit. */
export async function takeTurns(turn) {
  while (!quit.signal.aborted) {
    await turn();
    await sleep(Math.random() * 150, undefined, { signal: quit.signal }).catch(() => {});
  }
  reportStall();
}

/** Does a guarded step under the lock. Among several holders, which would overwrite what the others add, only keeps the lock. */
export async function step(token, check) {
  if (orders.limit === undefined) return guardedStep(token, check);
  await sleep(holdTime());
  if (!orders.trusting) check();
}

let steps = 0;

/** Returns the number of this hold, which is in what its steps add. */
export const nextStep = () => {
  steps += 1;
  return steps;
};

/**
 * Adds to both sets under the lock. `check` throws if the lock is no longer held; a trusting contender skips it. Resolves even
 * if the fence refused.
 */
export async function guardedStep(token, check, { lock, number } = { lock: orders.lock, number: nextStep() }) {
  const addition = `${orders.who} ${number}`;
  const fenced = await ask('GET', lock, 'fenced', { token });
  const plain = await ask('GET', lock, 'plain', { token });
  await sleep(holdTime());
  if (!orders.trusting) check();
  if (fenced !== undefined) await ask('POST', lock, 'fenced', { token, of: fenced, addition });
  await ask('POST', lock, 'plain', { token, of: plain, addition });
}

/** Milliseconds: mostly short; if `longHold` is set, sometimes so long that an outage can fall into the hold. */
const holdTime = () => {
  if (orders.longHold && Math.random() < 0.15) return orders.longHold * 1000 * (0.7 + 0.3 * Math.random());
  return 20 + Math.random() * 230;
};

async function ask(method, lock, set, query) {
  const answer = await fetch(`${orders.resource}/${lock}/${set}?${new URLSearchParams(query)}`, { method });
  const text = await answer.text();
  if (answer.ok) return text;
  if (answer.status !== 409) throw new Error(`the resource answered ${answer.status}: ${text}`);
  tell('refused', { token: query.token, lock });
  return undefined;
}
