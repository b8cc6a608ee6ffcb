/** A version of etcd that the embedded server imitates. */
export type EtcdVersion = keyof typeof RELEASES;

/** The release of each version whose answers the tests compare with the embedded server's. */
export const RELEASES = {
  '3.4': { server: '3.4.23', cluster: '3.4.0' },
  '3.5': { server: '3.5.35', cluster: '3.5.0' },
  '3.6': { server: '3.6.16', cluster: '3.6.0' },
} as const;
