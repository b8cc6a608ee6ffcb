import { randomUUID } from 'node:crypto';
import { Deadline } from '../../../base/time.ts';
import { decodeAppend, encodeCreateInOrder, encodeDelete } from '../../../v2/wire.ts';
import type { EndpointFacts } from '../facts.ts';
import type { MemberClient } from '../member.ts';
import { outcomeOf } from '../outcomes.ts';
import { byExpiration } from './clock.ts';

/** Directory of the test keys: outside of the lock prefix, and not listed by etcd. */
export const TEST_DIR = '/_etcd-v2-lock-doctor';
/** TTL of a test key in seconds, in case it cannot be removed. */
const TTL = 10;
/** Maximum seconds for the removal of a test key. */
const REMOVAL_TIMEOUT = 1;

/** Creates an in-order key, reads its name and expiration, and removes it. */
export async function tryTestKey(
  member: MemberClient,
  deadline: Deadline,
): Promise<Pick<EndpointFacts, 'testKey' | 'testWrite' | 'clock'>> {
  // The removal is bound to this unique value. So it cannot remove the key of another client if the answer names a wrong key.
  const value = `doctor ${randomUUID()}`;
  let facts: Pick<EndpointFacts, 'testKey' | 'clock'> = {};
  const testWrite = await outcomeOf(
    (async () => {
      const answer = await member.request(encodeCreateInOrder(TEST_DIR, value, { ttl: TTL }), deadline);
      const { node } = decodeAppend(answer, TEST_DIR, value);
      facts = { testKey: node.key, clock: byExpiration(answer, node.expiration, TTL) };
    })(),
  );
  if (facts.testKey !== undefined) await remove(member, facts.testKey, value);
  return { ...facts, testWrite };
}

/** Removes the key, and the directory unless another run of doctor still has a key in it. */
async function remove(member: MemberClient, key: string, prevValue: string): Promise<void> {
  const deadline = Deadline.after(REMOVAL_TIMEOUT);
  await outcomeOf(member.request(encodeDelete(key, { prevValue }), deadline));
  await outcomeOf(member.request(encodeDelete(TEST_DIR, { dir: true }), deadline));
}
