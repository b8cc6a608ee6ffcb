import { Etcd3 } from 'etcd3';

/** npm etcd3, on the v3 API of the same server. Its lock does not wait: it creates a lease and a key, and removes both. */
export function npmEtcd3(url) {
  const client = new Etcd3({ hosts: url });
  return {
    id: 'etcd3',
    title: 'npm `etcd3` `Lock`',
    async cycle(name) {
      const lock = client.lock(name).ttl(600);
      await lock.acquire();
      await lock.release();
    },
    stop: async () => client.close(),
  };
}
