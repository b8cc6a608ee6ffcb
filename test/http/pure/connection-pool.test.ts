import { Client } from 'undici';
import { expect, onTestFinished, test } from 'vitest';
import { Connection } from '../../../src/http/connection.ts';
import { ConnectionPool, Lender, type Loan } from '../../../src/http/connection-pool.ts';
import { OptionalFeature } from '../../../src/http/optional-feature.ts';

const never = new AbortController().signal;

/** Makes a pool whose connections are never opened. */
function usePool(): ConnectionPool {
  const pool = new ConnectionPool(() => new Connection(new OptionalFeature(2), () => new Client('http://127.0.0.1:1')));
  onTestFinished(() => pool.destroy());
  return pool;
}

const useLender = (limit: number): Lender => new Lender(usePool(), limit);

/** Starts an exchange on the connection. */
function inUse(loan: Loan | undefined): Loan {
  if (!loan) throw new Error('no connection was lent');
  loan.startExchange();
  return loan;
}

test('a lender lends each connection to one user at a time, and the most recently used one first', () => {
  const lender = useLender(2);
  const [first, second] = [inUse(lender.lend()), inUse(lender.lend())];
  expect(second.connection).not.toBe(first.connection);
  expect(lender.lend()).toBeUndefined();
  first.endExchange();
  second.endExchange();
  expect(lender.lend()?.connection).toBe(second.connection);
});

test('at the limit of connections, requests wait and are served in order', async () => {
  const lender = useLender(1);
  const held = inUse(lender.lend());
  const order: string[] = [];
  const use = async (name: string) => {
    const loan = inUse(await lender.wait(never));
    order.push(name);
    loan.endExchange();
  };
  const waiting = [use('second'), use('third')];
  held.endExchange();
  await Promise.all(waiting);
  expect(order).toEqual(['second', 'third']);
});

test('an aborted wait gets no connection', async () => {
  const lender = useLender(1);
  const held = inUse(lender.lend());
  const abort = new AbortController();
  const gone = lender.wait(abort.signal).catch((reason: unknown) => reason);
  abort.abort('gone');
  expect(await gone).toBe('gone');
  held.endExchange();
  expect(lender.lend()?.connection).toBe(held.connection);
});

test('a connection handed to a wait that aborts at the same time goes to the next wait', async () => {
  const lender = useLender(1);
  const held = inUse(lender.lend());
  const abort = new AbortController();
  const gone = lender.wait(abort.signal).catch((reason: unknown) => reason);
  const next = lender.wait(never);
  held.endExchange();
  abort.abort('gone');
  expect(await gone).toBe('gone');
  expect((await next).connection).toBe(held.connection);
});

test('a connection stays lent until every exchange on it has ended', () => {
  const lender = useLender(1);
  const loan = inUse(lender.lend());
  loan.startExchange();
  loan.endExchange();
  expect(lender.lend()).toBeUndefined();
  loan.endExchange();
  expect(lender.lend()).toBeDefined();
});

test('several lenders share the connections of one pool', () => {
  const pool = usePool();
  const [some, others] = [new Lender(pool, 1), new Lender(pool, 1)];
  const first = inUse(some.lend());
  const second = inUse(others.lend());
  expect(second.connection).not.toBe(first.connection);
  first.endExchange();
  second.endExchange();
  expect(some.lend()?.connection).toBe(second.connection);
  expect(others.lend()?.connection).toBe(first.connection);
});
