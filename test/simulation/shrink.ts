import type { Plan } from './plan.ts';
import type { Outcome } from './world.ts';

/** Maximum number of worlds to try. */
const MOST_TRIES = 60;

/** Finds a smaller plan that fails in the same way: with fewer faults, clients, locks and kinds of calls, and a shorter storm. */
export async function shrink(
  plan: Plan,
  outcome: Outcome,
  run: (plan: Plan) => Promise<Outcome>,
): Promise<{ plan: Plan; outcome: Outcome; tries: number }> {
  const kind = kindOf(outcome);
  let best = { plan, outcome };
  let tries = 0;
  for (let isSmaller = true; isSmaller && tries < MOST_TRIES; ) {
    isSmaller = false;
    for (const smaller of smallerThan(best.plan)) {
      if (tries >= MOST_TRIES) break;
      tries += 1;
      const tried = await run(smaller);
      if (kindOf(tried) !== kind) continue;
      best = { plan: smaller, outcome: tried };
      isSmaller = true;
      break;
    }
  }
  return { ...best, tries };
}

/** What went wrong, without names and numbers. */
const kindOf = ({ violations: [first = ''] }: Outcome): string =>
  first
    .replace(/^\S+ s: /, '')
    .replace(/[\d.]+|-?\w*\d\w*/g, '#')
    .slice(0, 60);

function* smallerThan(plan: Plan): Generator<Plan> {
  const { faults, clients, locks, storm } = plan;
  const last = faults.at(-1);
  if (plan.holds > 0) yield { ...plan, holds: 0 };
  for (const share of [0.25, 0.5, 0.75]) {
    const shorter = Math.round(storm * share);
    if (storm > 2000) yield { ...plan, storm: shorter, faults: within(faults, shorter) };
  }
  if (faults.length > 2) {
    const half = Math.floor(faults.length / 2);
    yield { ...plan, faults: faults.slice(0, half) };
    yield { ...plan, faults: faults.slice(half) };
  }
  // Faults name clients by their numbers, so only the last ones can go.
  if (clients.length > 1) {
    const rest = clients.slice(0, -1);
    yield {
      ...plan,
      clients: rest,
      faults: faults.filter((fault) => !('client' in fault) || fault.client < rest.length),
    };
  }
  if (locks.length > 1) yield { ...plan, locks: locks.slice(0, 1) };
  for (const fault of faults) if (last) yield { ...plan, faults: faults.filter((other) => other !== fault) };
  for (const [i, client] of clients.entries())
    for (const kind of Object.keys(client.calls) as (keyof typeof client.calls)[])
      if (client.calls[kind] && kind !== 'request')
        yield { ...plan, clients: clients.with(i, { ...client, calls: { ...client.calls, [kind]: 0 } }) };
}

const within = (faults: Plan['faults'], storm: number): Plan['faults'] =>
  faults.filter(({ at }) => at < storm).map((fault) => ({ ...fault, until: Math.min(fault.until, storm) }));
