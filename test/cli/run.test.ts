import { describe, expect, test } from 'vitest';
import { freshName, queueOn } from '../support/locks.ts';
import { onEtcd, run } from './running.ts';

describe('a command under a lock', () => {
  test('runs while the lock is held, and has the details of the lock in its environment', async () => {
    const name = freshName();
    const script = `console.log(JSON.stringify([Object.fromEntries(Object.entries(process.env).filter(([name]) => name.startsWith('ETCD_LOCK_'))),
      (await (await fetch(process.argv[1] + '/v2/keys' + process.env.ETCD_LOCK_KEY)).json()).node.value]))`;
    const { code, stdout, stderr } = await run(
      name,
      '--',
      process.execPath,
      '--input-type=module',
      '-e',
      script,
      onEtcd()['ETCD_ENDPOINTS'] ?? '',
    );
    expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
    const [environment, value] = JSON.parse(stdout);
    expect(environment).toEqual({
      ETCD_LOCK_NAME: name,
      ETCD_LOCK_KEY: expect.stringMatching(`^/_locks/${name}/\\d{20}$`),
      ETCD_LOCK_UUID: value.split('@')[0],
      ETCD_LOCK_TOKEN: String(BigInt(environment.ETCD_LOCK_KEY.slice(-20))),
      ETCD_LOCK_TOKEN_V2: environment.ETCD_LOCK_TOKEN,
    });
    expect(await queueOn(name)).toEqual([]);
  });

  test.each([0, 1, 7, 124, 255])('ends run with its exit code %i', async (code) => {
    expect(await run(freshName(), '--', 'sh', '-c', `exit ${code}`)).toMatchObject({ code, stderr: '' });
  });
});
