import { randomUUID } from 'node:crypto';
import { type Deadline, now } from '../../../base/time.ts';
import type { V3Client } from '../../../v3/client.ts';
import { encodeBytes } from '../../../v3/gateway/messages.ts';
import { keyPrefixOf } from '../../../v3/rpc/keys.ts';
import { firstBelow } from '../../../v3/rpc/ranges.ts';
import type { EndpointFacts, Outcome } from '../facts.ts';
import { outcomeOf } from '../outcomes.ts';
import { measureReads } from '../reads.ts';
import { limitedBy } from './limited.ts';

/** Tries the requests of a lock, on a lock that does not exist. Tests the permissions and changes nothing. */
export class Trial {
  readonly #queue: string;

  constructor(lockPrefix: string) {
    this.#queue = keyPrefixOf(lockPrefix) + randomUUID();
  }

  /** Measures linearizable reads, each until `deadline` at the latest. */
  measureReads(client: V3Client, deadline: Deadline): Promise<Pick<EndpointFacts, 'read' | 'quorumReadMs'>> {
    const readOnce = async (took: (milliseconds: number) => void) => took(await this.#read(client, deadline));
    return measureReads(readOnce, deadline, deadline.remaining / 2000);
  }

  read(client: V3Client, deadline: Deadline): Promise<Outcome> {
    return outcomeOf(this.#read(client, deadline));
  }

  /** Sends a transaction that would write a key, but only if the key exists. */
  write(client: V3Client, deadline: Deadline): Promise<Outcome> {
    const key = encodeBytes(`${this.#queue}/doctor`);
    const transaction = {
      compare: [{ key, target: 'CREATE', result: 'GREATER', create_revision: '0' }],
      success: [{ request_put: { key } }],
      failure: [{ request_delete_range: { key } }],
    };
    return outcomeOf(client.gateway.call('safe', limitedBy(deadline), (member) => member.ask('/kv/txn', transaction)));
  }

  /** Resolves to the duration in milliseconds. */
  #read(client: V3Client, deadline: Deadline): Promise<number> {
    return client.gateway.call('safe', limitedBy(deadline), async (member) => {
      const { sentAt } = await member.ask('/kv/range', firstBelow(`${this.#queue}/`, 1));
      return now() - sentAt;
    });
  }
}
