import { spawnSync } from 'node:child_process';
import { expect, onTestFinished, test } from 'vitest';
import { EmbeddedEtcd } from '../../src/server/index.ts';

test('a crowd that comes while the process is busy is let in, each at its first try', async () => {
  const etcd = await EmbeddedEtcd.start();
  onTestFinished(() => etcd.stop());
  const crowd = `
    import { connect } from 'node:net';
    let left = 800;
    for (let i = left; i > 0; i -= 1)
      connect(${new URL(etcd.url).port}, '127.0.0.1', () => (left -= 1) || process.exit(0));
  `;
  // Until this returns the server can accept nobody: who is not taken up by the system tries again in vain.
  const { status } = spawnSync(process.execPath, ['--input-type=module', '--eval', crowd], { timeout: 10_000 });
  expect(status).toBe(0);
  expect((await fetch(`${etcd.url}/version`)).status).toBe(200);
});
