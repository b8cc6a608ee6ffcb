import { describe, expect, inject, test } from 'vitest';
import { freshName, queueOn, useProxy } from '../support/locks.ts';
import { runScript } from '../support/script.ts';

const script = (body: string): string => `
  import { EtcdClient, Lock } from 'etcd-v2-lock';
  const client = new EtcdClient({ endpoints: process.env.ETCD });
  const lock = new Lock(client, process.env.NAME);
  ${body}
  console.log('end of script');
`;

/** Ends by itself, with the whole script run. */
async function expectToExit(body: string, name: string, etcd = inject('etcd')): Promise<void> {
  const { code, stdout, stderr } = await runScript(script(body), { ETCD: etcd, NAME: name });
  expect({ code, stdout, stderr }).toEqual({ code: 0, stdout: 'end of script\n', stderr: '' });
}

describe('a process exits by itself', () => {
  test('after the client was closed', async () => {
    const name = freshName();
    await expectToExit('await lock.acquire(); await lock.release(); await client.close();', name);
    expect(await queueOn(name)).toEqual([]);
  });

  test('without closing, after the lock was released', async () => {
    await expectToExit('await lock.acquire(); await lock.release();', freshName());
  });

  test('while a lock is kept alive: renewing keeps no process alive', async () => {
    await expectToExit('await lock.acquire({ lockTtl: 2, keepAlive: true });', freshName());
  });

  test('while it still owes a removal to a server that does not answer', async () => {
    const proxy = await useProxy();
    proxy.intercept(({ method }) => (method === 'DELETE' ? { refuse: true } : undefined));
    await expectToExit('await lock.acquire(); await lock.release().catch(() => {});', freshName(), proxy.url);
    proxy.intercept(({ method }) => (method === 'DELETE' ? { silent: true } : undefined));
    await expectToExit(
      `await new Lock(client, process.env.NAME).acquire({ lockTtl: 60 });
       await lock.acquire({ timeout: 0.2 }).catch((error) => { if (error.name !== 'EtcdWatchTimedOut') throw error; });`,
      freshName(),
      proxy.url,
    );
  });

  test('but not while it waits for a lock', async () => {
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

test('the package also loads by require', async () => {
  const { stdout, stderr } = await runScript(
    `import { createRequire } from 'node:module';
     const { Lock } = createRequire(process.cwd() + '/')('etcd-v2-lock');
     console.log(Lock.name);`,
  );
  expect({ stdout, stderr }).toEqual({ stdout: 'Lock\n', stderr: '' });
});
