import fc from 'fast-check';
import { expect } from 'vitest';
import { until } from '../../../support/until.ts';
import { type Asker, type LogIn, logIns, type UserAsk, userAsks, watchAsks } from './auth-asks.ts';
import type { Client, Wanted } from './client.ts';
import { comparable, comparableLine } from './comparable.ts';
import { level, type Pair } from './pair.ts';

/** The known state, which must be the same on both servers. */
export interface AuthModel {
  /** The last token of each user on each server. */
  readonly tokens: Map<Asker, { readonly real: string; readonly embedded: string }>;
  requests: number;
}

const wanted = ({ path, message }: Pick<UserAsk, 'path' | 'message'>, token: string | undefined): Wanted => ({
  method: 'POST',
  path: `/v3${path}`,
  body: JSON.stringify(message),
  headers: token === undefined ? {} : { authorization: token },
});

/** Sends the same request with the token that each server gave to the user. */
const both = <T>(
  ask: UserAsk,
  { tokens }: AuthModel,
  { real, embedded }: Pair,
  send: (to: Client, wanted: Wanted) => Promise<T>,
) => {
  const known = tokens.get(ask.as) ?? (ask.as === 'stranger' ? { real: 'x.1', embedded: 'x.1' } : undefined);
  return Promise.all([send(real, wanted(ask, known?.real)), send(embedded, wanted(ask, known?.embedded))]);
};

abstract class Step<T> implements fc.AsyncCommand<AuthModel, Pair> {
  protected readonly ask: T;

  constructor(ask: T) {
    this.ask = ask;
  }

  abstract run(model: AuthModel, pair: Pair): Promise<void>;

  check(): boolean {
    return true;
  }

  toString(): string {
    return JSON.stringify(this.ask);
  }
}

class Request extends Step<UserAsk> {
  async run(model: AuthModel, pair: Pair): Promise<void> {
    model.requests += 1;
    const [theirs, ours] = await both(this.ask, model, pair, async (to, one) => comparable(await to.ask(one)));
    expect(ours, this.toString()).toEqual(theirs);
  }
}

class Watch extends Step<UserAsk> {
  async run(model: AuthModel, pair: Pair): Promise<void> {
    model.requests += 1;
    const [theirs, ours] = await both(this.ask, model, pair, async (to, one) => {
      const { lines, close } = await to.stream(one);
      await until(() => lines.length > 0, Boolean, { timeout: 5000, every: 1 });
      close();
      return lines.map(comparableLine);
    });
    expect(ours, this.toString()).toEqual(theirs);
  }
}

class Login extends Step<LogIn> {
  async run(model: AuthModel, { real, embedded }: Pair): Promise<void> {
    model.requests += 1;
    const one = wanted({ path: '/auth/authenticate', message: { ...this.ask } }, undefined);
    const [theirs, ours] = await Promise.all([real.ask(one), embedded.ask(one)]);
    const [token, other] = [tokenIn(theirs.body), tokenIn(ours.body)];
    const masked = (body: string, secret: string | undefined) => (secret ? body.replace(secret, 'token') : body);
    expect(comparable({ ...ours, body: masked(ours.body, other) }), this.toString()).toEqual(
      comparable({ ...theirs, body: masked(theirs.body, token) }),
    );
    if (token && other) model.tokens.set(this.ask.name, { real: token, embedded: other });
  }
}

const tokenIn = (body: string): string | undefined => (JSON.parse(body) as { readonly token?: string }).token;

const request = (path: string, message: UserAsk['message']): Request => new Request({ as: 'nobody', path, message });

/** Makes two users, of which one may do everything, and enables authentication. */
const BEGINNING: readonly fc.AsyncCommand<AuthModel, Pair>[] = [
  request('/auth/enable', {}),
  request('/auth/user/add', { name: 'root', password: 'p1' }),
  request('/auth/enable', {}),
  request('/auth/role/add', { name: 'root' }),
  request('/auth/user/grant', { user: 'root', role: 'root' }),
  request('/auth/user/add', { name: 'alice', password: 'p1' }),
  request('/auth/role/add', { name: 'r1' }),
  request('/auth/user/grant', { user: 'alice', role: 'r1' }),
  request('/auth/role/grant', { name: 'r1', perm: { permType: 'READWRITE', key: 'YQ==', range_end: 'Yw==' } }),
  request('/auth/enable', {}),
  new Login({ name: 'root', password: 'p1' }),
  new Login({ name: 'alice', password: 'p1' }),
];

const steps: fc.Arbitrary<fc.AsyncCommand<AuthModel, Pair>> = fc.oneof(
  { weight: 20, arbitrary: userAsks.map((ask) => new Request(ask)) },
  { weight: 2, arbitrary: logIns.map((ask) => new Login(ask)) },
  { weight: 2, arbitrary: watchAsks.map((ask) => new Watch(ask)) },
);

export const authSequences = fc.commands([steps], { maxCommands: 100, size: 'max' });

/** Runs a sequence on servers without users and keys. */
export async function runAuth(sequence: Iterable<fc.AsyncCommand<AuthModel, Pair>>, pair: Pair): Promise<number> {
  const model: AuthModel = { tokens: new Map(), requests: 0 };
  await forgetUsers(pair);
  await level(pair);
  await fc.asyncModelRun(() => ({ model, real: pair }), BEGINNING);
  await fc.asyncModelRun(() => ({ model, real: pair }), sequence);
  return model.requests;
}

/** Disables authentication with whatever password root has, and removes all users and roles. */
async function forgetUsers({ real, embedded }: Pair): Promise<void> {
  for (const server of [real, embedded]) {
    for (const password of ['p1', 'p2', '']) {
      const { token } = await server.post('/v3/auth/authenticate', { name: 'root', password });
      if (token) await server.ask(wanted({ path: '/auth/disable', message: {} }, String(token)));
    }
    const { users = [] } = (await server.post('/v3/auth/user/list', {})) as { users?: readonly string[] };
    for (const name of users) await server.post('/v3/auth/user/delete', { name });
    const { roles = [] } = (await server.post('/v3/auth/role/list', {})) as { roles?: readonly string[] };
    for (const role of roles) await server.post('/v3/auth/role/delete', { role });
  }
}
