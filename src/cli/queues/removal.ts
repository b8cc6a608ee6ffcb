import { EtcdCompareFailed, EtcdException, EtcdKeyNotFound } from '../../errors.ts';
import type { EtcdClient } from '../../v2/client.ts';
import type { ParsedEntry } from '../../v2/locks/survey.ts';

/** What became of a removal. Where etcd's answer was lost, another look tells: the entry is `absent`, or still `present`. */
export type Removal = 'removed' | 'gone' | 'changed' | 'absent' | 'present';

/** Removes an entry if it still has the value it was seen with. */
export async function removeEntry(client: EtcdClient, entry: ParsedEntry): Promise<Removal> {
  const { key, value, modifiedIndex } = entry;
  try {
    // Not by the index, which python-etcd's renewals move; but etcd can compare no empty value.
    await client.delete(key, value === '' ? { prevIndex: modifiedIndex } : { prevValue: value });
    return 'removed';
  } catch (error) {
    if (error instanceof EtcdException && error.outcomeUnknown) return lookAgain(client, entry);
    if (error instanceof EtcdKeyNotFound) return 'gone';
    if (error instanceof EtcdCompareFailed) return 'changed';
    throw error;
  }
}

async function lookAgain(client: EtcdClient, { key, value }: ParsedEntry): Promise<Removal> {
  try {
    const { node } = await client.get(key, { quorum: true });
    return node.value === value ? 'present' : 'changed';
  } catch (error) {
    if (error instanceof EtcdKeyNotFound) return 'absent';
    throw error;
  }
}
