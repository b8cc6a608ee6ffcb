import { Client } from 'undici';
import { expect, onTestFinished, test } from 'vitest';
import { Connections } from '../../src/v2/connections.ts';
import { gate } from '../support/gate.ts';

const never = new AbortController().signal;

/** Connections to nowhere: none is ever opened. */
function useConnections(most: number): Connections {
  const connections = new Connections(most, () => new Client('http://127.0.0.1:1'));
  onTestFinished(() => connections.destroy());
  return connections;
}

test('lends each to one at a time, and the last one used first', async () => {
  const connections = useConnections(2);
  const [a, b] = [gate(), gate()];
  const used: Client[] = [];
  const hold = (until: Promise<unknown>) =>
    connections.use(never, async (client) => {
      used.push(client);
      await until;
    });
  const [first, second] = [hold(a.opened), hold(b.opened)];
  expect(new Set(used).size).toBe(2);
  a.open();
  await first;
  b.open();
  await second;
  await hold(Promise.resolve());
  expect(used[2]).toBe(used[1]);
});

test('lets those wait for which there is none, in the order they came', async () => {
  const connections = useConnections(1);
  const held = gate();
  const order: string[] = [];
  const note = (name: string) => connections.use(never, async () => void order.push(name));
  const first = connections.use(never, () => held.opened);
  const others = [note('second'), note('third')];
  held.open();
  await Promise.all([first, ...others]);
  expect(order).toEqual(['second', 'third']);
});

test('is not handed to one who has given up', async () => {
  const connections = useConnections(1);
  const held = gate();
  const abort = new AbortController();
  const first = connections.use(never, () => held.opened);
  const gone = connections.use(abort.signal, async () => 'used').catch((reason: unknown) => reason);
  abort.abort('gone');
  expect(await gone).toBe('gone');
  held.open();
  await first;
  expect(await connections.use(never, async () => 'used')).toBe('used');
});

test('stays lent until all is over that was begun on it, also where the work has failed', async () => {
  const connections = useConnections(1);
  const begun = gate();
  let next = false;
  const failed = connections.use(never, async (_, busyFor) => {
    busyFor(begun.opened);
    throw new Error('given up');
  });
  await expect(failed).rejects.toThrow('given up');
  const following = connections.use(never, async () => {
    next = true;
  });
  await new Promise(setImmediate);
  expect(next).toBe(false);
  begun.open();
  await following;
});
