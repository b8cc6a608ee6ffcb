// One of several processes that contend for one lock: `contender.mjs URL`, controlled by JSON lines.
import { EtcdClient, Lock } from 'etcd-v2-lock';
import { answerLines } from '../setting/answering.mjs';

const client = new EtcdClient({ endpoints: [process.argv[2]] });

const operations = {
  async contend({ name, seconds }) {
    const end = performance.now() + seconds * 1000;
    let done = 0;
    while (performance.now() < end) {
      const lock = new Lock(client, name);
      await lock.acquire({ lockTtl: 600 });
      await lock.release();
      done += 1;
    }
    return done;
  },
};

await answerLines(operations);
await client.close();
