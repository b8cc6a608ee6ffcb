import { expect, inject, test } from 'vitest';
import { entriesBelow } from '../../test/support/gateway.ts';
import { freshName } from '../../test/support/locks.ts';
import { Contender, IN_THE_QUEUE, type Kind } from './contenders.ts';
import { untilQueued } from './queue.ts';

test.each(['3.4', '3.5', '3.6'] as const)(
  'on etcd %s, LockManager and each other client wait for the one before them, and their tokens grow',
  async (version) => {
    const etcd = inject('servers')[version];
    const lock = `/_locks/${freshName()}`;
    const kinds: Kind[] = ['Node', ...IN_THE_QUEUE.flatMap((kind): Kind[] => [kind, 'Node'])];
    const holders: number[] = [];
    const holds: { contender: Contender; token: Promise<bigint> }[] = [];
    for (const [index, kind] of kinds.entries()) {
      const contender = new Contender(kind, { etcd, lock, ttl: 60 });
      const token = contender.hold();
      token.then(
        () => holders.push(index),
        () => {},
      );
      holds.push({ contender, token });
      await untilQueued(lock, index + 1, etcd);
    }
    const tokens: bigint[] = [];
    for (const [index, { contender, token }] of holds.entries()) {
      tokens.push(await token);
      expect(holders).toEqual([...kinds.keys()].slice(0, index + 1));
      expect(await entriesBelow(`${lock}/`, etcd)).toHaveLength(kinds.length - index);
      await contender.release();
    }
    expect(tokens.filter((token, index) => index > 0 && token <= (tokens[index - 1] ?? token))).toEqual([]);
    expect(await entriesBelow(`${lock}/`, etcd)).toEqual([]);
  },
);
