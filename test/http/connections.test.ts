import { Client } from 'undici';
import { expect, onTestFinished, test } from 'vitest';
import { Connection } from '../../src/http/connection.ts';
import { Borrowers, Connections, type Loan } from '../../src/http/connections.ts';
import { Trial } from '../../src/http/trial.ts';

const never = new AbortController().signal;

/** Connections to nowhere: none is ever opened. */
function useConnections(): Connections {
  const connections = new Connections(() => new Connection(new Trial(), () => new Client('http://127.0.0.1:1')));
  onTestFinished(() => connections.destroy());
  return connections;
}

const useBorrowers = (most: number): Borrowers => new Borrowers(useConnections(), most);

/** A connection on which something has been begun. */
function inUse(loan: Loan | undefined): Loan {
  if (!loan) throw new Error('none was lent');
  loan.begins();
  return loan;
}

test('lends each to one at a time, and the last one given back first', () => {
  const borrowers = useBorrowers(2);
  const [first, second] = [inUse(borrowers.borrow()), inUse(borrowers.borrow())];
  expect(second.connection).not.toBe(first.connection);
  expect(borrowers.borrow()).toBeUndefined();
  first.ends();
  second.ends();
  expect(borrowers.borrow()?.connection).toBe(second.connection);
});

test('lets those wait for which there is none, in the order they came', async () => {
  const borrowers = useBorrowers(1);
  const held = inUse(borrowers.borrow());
  const order: string[] = [];
  const use = async (name: string) => {
    const loan = inUse(await borrowers.wait(never));
    order.push(name);
    loan.ends();
  };
  const others = [use('second'), use('third')];
  held.ends();
  await Promise.all(others);
  expect(order).toEqual(['second', 'third']);
});

test('is not handed to one who has given up', async () => {
  const borrowers = useBorrowers(1);
  const held = inUse(borrowers.borrow());
  const abort = new AbortController();
  const gone = borrowers.wait(abort.signal).catch((reason: unknown) => reason);
  abort.abort('gone');
  expect(await gone).toBe('gone');
  held.ends();
  expect(borrowers.borrow()?.connection).toBe(held.connection);
});

test('goes on to the next where it is handed to one who gives up at that moment', async () => {
  const borrowers = useBorrowers(1);
  const held = inUse(borrowers.borrow());
  const abort = new AbortController();
  const gone = borrowers.wait(abort.signal).catch((reason: unknown) => reason);
  const next = borrowers.wait(never);
  held.ends();
  abort.abort('gone');
  expect(await gone).toBe('gone');
  expect((await next).connection).toBe(held.connection);
});

test('stays lent until all is over that was begun on it', () => {
  const borrowers = useBorrowers(1);
  const loan = inUse(borrowers.borrow());
  loan.begins();
  loan.ends();
  expect(borrowers.borrow()).toBeUndefined();
  loan.ends();
  expect(borrowers.borrow()).toBeDefined();
});

test('is lent again to whoever comes next, of whatever kind', () => {
  const connections = useConnections();
  const [some, others] = [new Borrowers(connections, 1), new Borrowers(connections, 1)];
  const first = inUse(some.borrow());
  const second = inUse(others.borrow());
  expect(second.connection).not.toBe(first.connection);
  first.ends();
  second.ends();
  expect(some.borrow()?.connection).toBe(second.connection);
  expect(others.borrow()?.connection).toBe(first.connection);
});
