import { Client } from 'undici';
import { expect, onTestFinished, test } from 'vitest';
import { Connections, type Loan } from '../../src/v2/connections.ts';

const never = new AbortController().signal;

/** Connections to nowhere: none is ever opened. */
function useConnections(most: number): Connections {
  const connections = new Connections(most, () => new Client('http://127.0.0.1:1'));
  onTestFinished(() => connections.destroy());
  return connections;
}

/** A connection on which something has been begun. */
function inUse(loan: Loan | undefined): Loan {
  if (!loan) throw new Error('none was lent');
  loan.begins();
  return loan;
}

test('lends each to one at a time, and the last one given back first', () => {
  const connections = useConnections(2);
  const [first, second] = [inUse(connections.take()), inUse(connections.take())];
  expect(second.client).not.toBe(first.client);
  expect(connections.take()).toBeUndefined();
  first.ends();
  second.ends();
  expect(connections.take()?.client).toBe(second.client);
});

test('lets those wait for which there is none, in the order they came', async () => {
  const connections = useConnections(1);
  const held = inUse(connections.take());
  const order: string[] = [];
  const use = async (name: string) => {
    const loan = inUse(await connections.wait(never));
    order.push(name);
    loan.ends();
  };
  const others = [use('second'), use('third')];
  held.ends();
  await Promise.all(others);
  expect(order).toEqual(['second', 'third']);
});

test('is not handed to one who has given up', async () => {
  const connections = useConnections(1);
  const held = inUse(connections.take());
  const abort = new AbortController();
  const gone = connections.wait(abort.signal).catch((reason: unknown) => reason);
  abort.abort('gone');
  expect(await gone).toBe('gone');
  held.ends();
  expect(connections.take()?.client).toBe(held.client);
});

test('goes on to the next where it is handed to one who gives up at that moment', async () => {
  const connections = useConnections(1);
  const held = inUse(connections.take());
  const abort = new AbortController();
  const gone = connections.wait(abort.signal).catch((reason: unknown) => reason);
  const next = connections.wait(never);
  held.ends();
  abort.abort('gone');
  expect(await gone).toBe('gone');
  expect((await next).client).toBe(held.client);
});

test('stays lent until all is over that was begun on it', () => {
  const connections = useConnections(1);
  const loan = inUse(connections.take());
  loan.begins();
  loan.ends();
  expect(connections.take()).toBeUndefined();
  loan.ends();
  expect(connections.take()).toBeDefined();
});
