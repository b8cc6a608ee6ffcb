import { spawnSync } from 'node:child_process';
import { expect, onTestFinished, test } from 'vitest';
import { EmbeddedEtcd } from '../../../src/server/index.ts';

test('800 clients that connect while the process is busy all succeed at the first attempt', async () => {
  const etcd = await EmbeddedEtcd.start();
  onTestFinished(() => etcd.stop());
  const script = `
    import { connect } from 'node:net';
    let left = 800;
    for (let i = left; i > 0; i -= 1)
      connect(${new URL(etcd.url).port}, '127.0.0.1', () => (left -= 1) || process.exit(0));
  `;
  // This blocks the server's event loop, so only the system accepts connections. A retry would fail like the first attempt.
  const { status } = spawnSync(process.execPath, ['--input-type=module', '--eval', script], { timeout: 10_000 });
  expect(status).toBe(0);
  expect((await fetch(`${etcd.url}/version`)).status).toBe(200);
});
