import { EtcdCompareFailed, EtcdException, EtcdKeyNotFound } from '../../errors.ts';
import type { V2Client } from '../../v2/client.ts';
import type { ParsedEntry } from '../../v2/locks/survey.ts';

/**
 * Result of a removal. `gone`: the entry was removed or expired before. `changed`: its value has changed. If the answer was
 * lost, the entry is read again: it is `absent`, still `present`, or `changed`.
 */
export type Removal = 'removed' | 'gone' | 'changed' | 'absent' | 'present';

/** Removes an entry, unless its value has changed since it was read. */
export async function removeEntry(client: V2Client, entry: ParsedEntry): Promise<Removal> {
  const { key, value, modifiedIndex } = entry;
  try {
    // A renewal by python-etcd changes the index, so the value is compared. etcd cannot compare an empty value.
    await client.delete(key, value === '' ? { prevIndex: modifiedIndex } : { prevValue: value });
    return 'removed';
  } catch (error) {
    if (error instanceof EtcdException && error.outcomeUnknown) return readAgain(client, entry);
    if (error instanceof EtcdKeyNotFound) return 'gone';
    if (error instanceof EtcdCompareFailed) return 'changed';
    throw error;
  }
}

async function readAgain(client: V2Client, { key, value }: ParsedEntry): Promise<Removal> {
  try {
    const { node } = await client.get(key, { quorum: true });
    return node.value === value ? 'present' : 'changed';
  } catch (error) {
    if (error instanceof EtcdKeyNotFound) return 'absent';
    throw error;
  }
}
