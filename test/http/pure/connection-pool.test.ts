import { Client } from 'undici';
import { expect, onTestFinished, test } from 'vitest';
import { Connection } from '../../../src/http/connection.ts';
import { ConnectionPool, Lender } from '../../../src/http/connection-pool.ts';
import { OptionalFeature } from '../../../src/http/optional-feature.ts';

const never = new AbortController().signal;

/** Makes a pool whose connections are never opened. */
function usePool(): ConnectionPool {
  const make = () => new Client('http://127.0.0.1:1');
  const pool = new ConnectionPool(() => new Connection(new OptionalFeature(2), (error) => error, make));
  onTestFinished(() => pool.destroy());
  return pool;
}

const useLender = (limit: number): Lender => new Lender(usePool(), limit);

/** Starts an exchange on the connection. */
function inUse(connection: Connection | undefined): Connection {
  if (!connection) throw new Error('no connection was lent');
  connection.startExchange();
  return connection;
}

test('a lender lends each connection to one user at a time, and the most recently used one first', () => {
  const lender = useLender(2);
  const [first, second] = [inUse(lender.lend()), inUse(lender.lend())];
  expect(second).not.toBe(first);
  expect(lender.lend()).toBeUndefined();
  first.endExchange();
  second.endExchange();
  expect(lender.lend()).toBe(second);
});

test('at the limit of connections, requests wait and are served in order', async () => {
  const lender = useLender(1);
  const held = inUse(lender.lend());
  const order: string[] = [];
  const use = async (name: string) => {
    const connection = inUse(await lender.wait(never));
    order.push(name);
    connection.endExchange();
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
  expect(lender.lend()).toBe(held);
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
  expect(await next).toBe(held);
});

test('a connection stays lent until every exchange on it has ended', () => {
  const lender = useLender(1);
  const connection = inUse(lender.lend());
  connection.startExchange();
  connection.endExchange();
  expect(lender.lend()).toBeUndefined();
  connection.endExchange();
  expect(lender.lend()).toBeDefined();
});

test('several lenders share the connections of one pool', () => {
  const pool = usePool();
  const [some, others] = [new Lender(pool, 1), new Lender(pool, 1)];
  const first = inUse(some.lend());
  const second = inUse(others.lend());
  expect(second).not.toBe(first);
  first.endExchange();
  second.endExchange();
  expect(some.lend()).toBe(second);
  expect(others.lend()).toBe(first);
});

test('replaced connections serve no further request: the idle ones, and those in use after their exchanges', async () => {
  const pool = usePool();
  const lender = new Lender(pool, 2);
  const [idle, busy] = [inUse(lender.lend()), inUse(lender.lend())];
  idle.endExchange();
  pool.replace();
  const fresh = inUse(lender.lend());
  expect([idle, busy]).not.toContain(fresh);
  const waiting = lender.wait(never);
  busy.endExchange();
  const next = inUse(await waiting);
  expect([idle, busy, fresh]).not.toContain(next);
  next.endExchange();
  expect(lender.lend()).toBe(next);
});
