import fc from 'fast-check';
import { expect } from 'vitest';
import { until } from '../../support/until.ts';
import type { Both } from './both.ts';
import type { Exchange, Wanted } from './exchange.ts';
import { mapped, mappedBody } from './mapping.ts';
import { type Ask, asks, type Param, type Text, waits } from './requests.ts';

/** The known state, which must be the same on both servers. */
export interface Model {
  /** The directory of this sequence. */
  readonly dir: string;
  index: number;
  /** The last known index at which each key changed. */
  readonly changedAt: Map<string, string>;
  /** Keys that were created in order. */
  readonly inOrder: string[];
  readonly polls: Poll[];
  requests: number;
}

interface Poll {
  readonly wanted: Wanted;
  readonly real: Exchange;
  readonly embedded: Exchange;
}

/** A request of a sequence. It may follow any other. */
abstract class Step implements fc.AsyncCommand<Model, Both> {
  protected readonly ask: Ask;

  constructor(ask: Ask) {
    this.ask = ask;
  }

  abstract run(model: Model, both: Both): Promise<void>;

  check(): boolean {
    return true;
  }

  toString(): string {
    return JSON.stringify(this.ask);
  }
}

class Request extends Step {
  async run(model: Model, both: Both): Promise<void> {
    const wanted = writtenDown(this.ask, model);
    const [real, embedded] = await askBoth(both, wanted, model);
    const [theirs, ours] = await Promise.all([real.whole(), embedded.whole()]);
    const sorted = /[?&]sorted=(?:true|1|t|T|TRUE|True)(?:&|$)/.test(wanted.target);
    expect(mapped(embedded, ours, sorted), shown(wanted)).toEqual(mapped(real, theirs, sorted));
    model.index = Math.max(model.index, Number(real.headers['x-etcd-index'] ?? 0));
    const changed = /"modifiedIndex":(\d+)/.exec(theirs)?.[1];
    if (changed !== undefined) model.changedAt.set(pathOf(this.ask.path, model), changed);
    if (wanted.method === 'POST' && real.status === 201) model.inOrder.push(madeIn(wanted, real));
  }
}

class Wait extends Step {
  async run(model: Model, both: Both): Promise<void> {
    const wanted = writtenDown(this.ask, model);
    const [real, embedded] = await askBoth(both, wanted, model);
    expect(mapped(embedded, '', true), shown(wanted)).toEqual(mapped(real, '', true));
    model.polls.push({ wanted, real, embedded });
  }
}

export const sequences = fc.commands([asks.map((ask) => new Request(ask)), waits.map((ask) => new Wait(ask))], {
  maxCommands: 30,
  size: 'max',
});

/** Removes the keys of the sequence, which ends most polls. Then expects the same events from both servers in every poll. */
export async function finish(model: Model, both: Both): Promise<void> {
  // These writes end the waits for an index slightly in the future.
  for (let i = 0; i < 4; i += 1)
    await new Request({ method: 'PUT', path: `end${i}`, query: [], form: [] }).run(model, both);
  await new Request({ method: 'DELETE', path: '', query: [['recursive', 'true']], form: undefined }).run(model, both);
  // A key left in the root would appear in later listings, with a TTL that differs between the servers.
  for (const whole of model.inOrder.filter((key) => !key.startsWith(model.dir)))
    await new Request({ method: 'DELETE', path: { whole }, query: [['recursive', 'true']], form: undefined }).run(
      model,
      both,
    );
  // Events still in transit on other connections arrive before the answers to these reads.
  for (let i = 0; i < 2; i += 1)
    await new Request({ method: 'GET', path: '', query: [], form: undefined }).run(model, both);
  try {
    for (const { wanted, real, embedded } of model.polls) {
      const seen = (exchange: Exchange) => ({ body: mappedBody(exchange.body(), false), ended: exchange.ended() });
      const same = () => JSON.stringify(seen(embedded)) === JSON.stringify(seen(real));
      await until(same, Boolean, { timeout: 3000, every: 1 }).catch(() =>
        expect(seen(embedded), shown(wanted)).toEqual(seen(real)),
      );
    }
  } finally {
    for (const { real, embedded } of model.polls) for (const exchange of [real, embedded]) exchange.abort();
  }
}

async function askBoth(both: Both, wanted: Wanted, model: Model): Promise<[Exchange, Exchange]> {
  model.requests += 1;
  return Promise.all([both.real.ask(wanted), both.embedded.ask(wanted)]);
}

function writtenDown({ method, path, query, form }: Ask, model: Model): Wanted {
  const at = pathOf(path, model);
  const search = encoded(query, at, model);
  const target = `/v2/keys${at}${search === '' ? '' : `?${search}`}`;
  return { method, target, ...(form ? { form: encoded(form, at, model) } : {}) };
}

function pathOf(path: Ask['path'], { dir, inOrder }: Model): string {
  if (typeof path === 'string') return path === '' ? dir : `${dir}/${path}`;
  return 'whole' in path ? path.whole : (inOrder.at(-1 - path.inOrder) ?? `${dir}/none`);
}

const encoded = (params: readonly Param[], at: string, model: Model): string =>
  `${new URLSearchParams(params.map(([name, value]): [string, string] => [name, textOf(value, at, model)]))}`;

function textOf(value: Text, at: string, { index, changedAt }: Model): string {
  if (typeof value === 'string') return value;
  return 'behind' in value ? String(index - value.behind) : (changedAt.get(at) ?? '7');
}

/** The created key, with the directory as the request spelt it: the answer does not show bytes that are not UTF-8. */
const madeIn = ({ target }: Wanted, real: Exchange): string =>
  `${target.replace(/\/?(?:\?.*)?$/s, '').slice('/v2/keys'.length)}/${String(real.headers['x-etcd-index']).padStart(20, '0')}`;

const shown = ({ method, target, form }: Wanted): string => `${method} ${target} ${form ?? ''}`;
