import { EtcdClusterIdChanged, type EtcdException, EtcdLockExpired } from '../../errors.ts';
import type { OwnEntry } from '../store.ts';
import { parseValue } from './entry-value.ts';

/**
 * Returns the error that says why an own entry is lost.
 * @param clusterId the cluster id of the answer that showed the loss
 * @param why what happened to the key; not used if the answer came from another cluster
 */
export function lost(own: OwnEntry, clusterId: string | undefined, why: string): EtcdException {
  if (clusterId !== own.clusterId)
    return new EtcdClusterIdChanged(
      `${own.key} was created in cluster ${own.clusterId}, but cluster ${clusterId} answered`,
    );
  const identity = identityOf(own);
  const clash = identity === undefined ? '' : `; does another process have the identity ${JSON.stringify(identity)}?`;
  return new EtcdLockExpired(`${own.key} is lost: ${why}${clash}`);
}

/** Returns the error for an own entry whose lease the store has ended. No other client has removed the entry. */
export const leaseEnded = ({ key }: OwnEntry): EtcdLockExpired =>
  new EtcdLockExpired(`${key} is lost: its lease has ended`, { isEndedByStore: true });

/** Returns the error for a ticket that has no own entry. */
export const noEntry = (path: string, value: string): EtcdLockExpired =>
  new EtcdLockExpired(`${path} has no entry with the value ${value}`);

/** Returns the identity of the owner, which another process may also have by mistake: the two then evict each other. */
export const identityOf = ({ value }: Pick<OwnEntry, 'value'>): string | undefined => parseValue(value).identity;
