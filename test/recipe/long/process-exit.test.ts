import { describe, expect, inject, test } from 'vitest';
import { freshName, queueOn, useProxy } from '../../support/locks.ts';
import { runScript } from '../../support/script.ts';

const script = (body: string): string => `
  import { EtcdClient, Lock } from 'etcd-v2-lock';
  const client = new EtcdClient({ endpoints: process.env.ETCD });
  const lock = new Lock(client, process.env.NAME);
  ${body}
  console.log('end of script');
`;

/** Expects the script to run to its end, and its process to exit by itself. */
async function expectToExit(body: string, name: string, etcd = inject('etcd')): Promise<void> {
  const { code, stdout, stderr } = await runScript(script(body), { ETCD: etcd, NAME: name });
  expect({ code, stdout, stderr }).toEqual({ code: 0, stdout: 'end of script\n', stderr: '' });
}

describe('a process exits by itself', () => {
  test('after the client is closed', async () => {
    const name = freshName();
    await expectToExit('await lock.acquire(); await lock.release(); await client.close();', name);
    expect(await queueOn(name)).toEqual([]);
  });

  test('after the lock is released, even if the client is not closed', async () => {
    await expectToExit('await lock.acquire(); await lock.release();', freshName());
  });

  test('while a lock is held with keepAlive: renewals do not keep the process alive', async () => {
    await expectToExit('await lock.acquire({ lockTtl: 2, keepAlive: true });', freshName());
  });

  test('while a removal is pending because the server does not answer', async () => {
    const proxy = await useProxy();
    const accept = proxy.intercept(({ method }) => (method === 'DELETE' ? { refuse: true } : undefined));
    await expectToExit('await lock.acquire(); await lock.release().catch(() => {});', freshName(), proxy.url);
    accept();
    proxy.intercept(({ method }) => (method === 'DELETE' ? { silent: true } : undefined));
    await expectToExit(
      `await new Lock(client, process.env.NAME).acquire({ lockTtl: 60 });
       await lock.acquire({ timeout: 0.2 }).catch((error) => { if (error.name !== 'EtcdWatchTimedOut') throw error; });`,
      freshName(),
      proxy.url,
    );
  });

  test('only after its pending acquire has ended', async () => {
    const name = freshName();
    await expectToExit(
      `const other = new Lock(client, process.env.NAME);
       await other.acquire();
       setTimeout(() => other.release(), 500).unref();
       await lock.acquire();
       await lock.release();`,
      name,
    );
    expect(await queueOn(name)).toEqual([]);
  });
});

test('the package can also be loaded with require', async () => {
  const { stdout, stderr } = await runScript(
    `import { createRequire } from 'node:module';
     const { Lock } = createRequire(process.cwd() + '/')('etcd-v2-lock');
     console.log(Lock.name);`,
  );
  expect({ stdout, stderr }).toEqual({ stdout: 'Lock\n', stderr: '' });
});
