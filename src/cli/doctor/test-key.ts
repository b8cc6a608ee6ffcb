import { randomUUID } from 'node:crypto';
import { Deadline } from '../../time.ts';
import { decodeAppend, encodeCreateInOrder, encodeDelete } from '../../v2/wire.ts';
import { byExpiration } from './clock.ts';
import type { EndpointFacts } from './facts.ts';
import { type AskedMember, outcomeOf } from './member.ts';

/** Outside the locks, and hidden from listings. */
export const TEST_DIR = '/_etcd-v2-lock-doctor';
/** Seconds until a test key is gone where it could not be removed. */
const TTL = 10;
/** Seconds to remove it, at the most. */
const PATIENCE = 1;

/** Makes a key in order, looks at its name and expiration, and removes it again. */
export async function tryTestKey(
  member: AskedMember,
  deadline: Deadline,
): Promise<Pick<EndpointFacts, 'testKey' | 'testWrite' | 'clock'>> {
  // Nobody else's, so that a member that names another key has nothing removed.
  const value = `doctor ${randomUUID()}`;
  let facts: Pick<EndpointFacts, 'testKey' | 'clock'> = {};
  const testWrite = await outcomeOf(
    (async () => {
      const answer = await member.ask(encodeCreateInOrder(TEST_DIR, value, { ttl: TTL }), deadline);
      const { node } = decodeAppend(answer, TEST_DIR, value);
      facts = { testKey: node.key, clock: byExpiration(answer, node.expiration, TTL) };
    })(),
  );
  if (facts.testKey !== undefined) await remove(member, facts.testKey, value);
  return { ...facts, testWrite };
}

/** The directory stays where others are testing, too: the last one removes it. */
async function remove(member: AskedMember, key: string, prevValue: string): Promise<void> {
  const deadline = Deadline.after(PATIENCE);
  await outcomeOf(member.ask(encodeDelete(key, { prevValue }), deadline));
  await outcomeOf(member.ask(encodeDelete(TEST_DIR, { dir: true }), deadline));
}
