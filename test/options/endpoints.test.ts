import { expect, test } from 'vitest';
import { runScript } from '../support/script.ts';

test('a program in JavaScript may give endpoints as it gives them to the command line', async () => {
  const { stdout, stderr } = await runScript(`
    import { V2Client } from './dist/v2/client.js';
    import { EmbeddedEtcd } from 'etcd-v2-lock/server';
    const etcd = await EmbeddedEtcd.start();
    const { host, port } = new URL(etcd.url);
    for (const endpoints of [host, 'localhost:' + port, ['127.0.0.1:' + port], host + ', ' + etcd.url]) {
      const client = new V2Client({ endpoints });
      console.log((await client.set('/k', 'v')).action);
      await client.close();
    }
    await etcd.stop();
  `);
  expect(stderr).toBe('');
  expect(stdout).toBe('set\n'.repeat(4));
});
