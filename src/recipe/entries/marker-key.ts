/**
 * Returns the key of a lock's marker: `<lockPrefix>_ticks:<name>`, with "/" and "%" of the name percent-encoded. It is not below the
 * lock prefix, where the queues are. It needs no directory of its own, which etcd v2 would keep after the marker has expired.
 */
export const markerKey = (lockPrefix: string, lock: string): string =>
  `${lockPrefix}_ticks:${lock.replaceAll('%', '%25').replaceAll('/', '%2F')}`;
