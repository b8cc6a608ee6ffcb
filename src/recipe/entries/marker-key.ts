/**
 * Returns the key of a lock's marker: `<lockPrefix>_ticks:<name>`, with "/" and "%" of the name percent-encoded. It is not below the
 * lock prefix, where the queues are. It needs no directory of its own, which etcd v2 would keep after the marker has expired.
 */
export const markerKey = (lockPrefix: string, lock: string): string =>
  `${markerPrefix(lockPrefix)}${lock.replaceAll('%', '%25').replaceAll('/', '%2F')}`;

/** Returns what the keys of all markers begin with. */
export const markerPrefix = (lockPrefix: string): string => `${lockPrefix}_ticks:`;

/** Returns the name of the lock whose marker has this key. */
export const lockOfMarker = (lockPrefix: string, key: string): string =>
  key.slice(markerPrefix(lockPrefix).length).replaceAll('%2F', '/').replaceAll('%25', '%');
