import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, inject, test } from 'vitest';
import { entriesBelow } from '../../test/support/gateway.ts';
import { freshName, rejection } from '../../test/support/locks.ts';
import { temporaryDirectory } from '../../test/support/temporary.ts';
import { Contender, IN_THE_QUEUE, type Kind } from './contenders.ts';
import type { Version } from './servers.ts';

const CYCLES = 300;

const MIXES: readonly (readonly [Version, string, readonly Kind[]])[] = (
  [
    ['3.4', ['etcdctl']],
    ['3.5', IN_THE_QUEUE],
    ['3.6', ['etcdctl']],
    ['3.6', ['Go 3.5', 'Go 3.6']],
    ['3.6', ['jetcd']],
    ['3.6', IN_THE_QUEUE],
  ] as const
).map(([version, others]) => [version, others.join(', '), others]);

/** A counter at 0 that nobody uses. */
function useCounter(): string {
  const directory = temporaryDirectory();
  writeFileSync(join(directory, 'counter'), '0');
  writeFileSync(join(directory, 'history'), '');
  return directory;
}

test.each(MIXES)(
  `on etcd %s, ${CYCLES} cycles of LockManager and %s lose no update, and the tokens grow`,
  async (version, _, others) => {
    const etcd = inject('servers')[version];
    const lock = `/_locks/${freshName()}`;
    const directory = useCounter();
    const kinds: Kind[] = ['Node', 'Node', ...others];
    const contenders = kinds.map((kind) => new Contender(kind, { etcd, lock, ttl: 60 }));
    // Otherwise one of them might finish its cycles before another has started.
    await Promise.all(contenders.map((contender) => contender.hold().then(() => contender.release())));
    await Promise.all(contenders.map((contender) => contender.cycle(CYCLES / contenders.length, directory)));

    expect(readFileSync(join(directory, 'counter'), 'utf8').trim()).toBe(String(CYCLES));
    const history = readFileSync(join(directory, 'history'), 'utf8').trim().split('\n');
    const holds = history.map((line) => {
      const [, client = '', token = ''] = /^(\S+) (\d+)$/.exec(line) ?? [];
      return { client, token: BigInt(token) };
    });
    expect(holds).toHaveLength(CYCLES);
    const pairs = holds.slice(1).map((hold, index) => ({ hold, before: holds[index] ?? hold }));
    expect(pairs.filter(({ hold, before }) => hold.token <= before.token)).toEqual([]);
    // The clients did not take their turns in separate blocks.
    expect(pairs.filter(({ hold, before }) => hold.client !== before.client).length).toBeGreaterThan(CYCLES / 6);
    expect(await entriesBelow(`${lock}/`, etcd)).toEqual([]);
  },
);

// Shows that the test above detects what it claims to detect.
test.each(['Node', ...IN_THE_QUEUE] as const)('%s fails when another holder is inside', async (kind) => {
  const directory = useCounter();
  mkdirSync(join(directory, 'inside'));
  const contender = new Contender(kind, { etcd: inject('servers')['3.6'], lock: `/_locks/${freshName()}`, ttl: 60 });
  expect(await rejection(contender.cycle(1, directory))).toMatchObject({ message: expect.stringMatching(/exists/i) });
  expect(readFileSync(join(directory, 'counter'), 'utf8')).toBe('0');
});
