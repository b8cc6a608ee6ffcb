import { describe, expect, inject, onTestFinished, test } from 'vitest';
import { EtcdLockTimeout, EtcdValueError, Lock } from '../../../src/index.ts';
import { runCli } from '../../support/cli.ts';
import { HARMLESS, HOSTILE, unprintableIn } from '../../support/hostile.ts';
import { freshName, queueOn, raw, rejection, useClient } from '../../support/locks.ts';
import { useManager } from '../../support/managers.ts';

async function useQueueWith(value: string): Promise<string> {
  const name = freshName();
  await raw('POST', `/_locks/${name}`, { value, ttl: '600' });
  onTestFinished(async () => void (await raw('DELETE', `/_locks/${name}?recursive=true`)));
  return name;
}

/** Seconds: long enough to read the queue on a busy machine. */
const TIMEOUT = 4;

/** Returns the errors of a `Lock` and a `LockManager` that time out behind an entry with this value. */
async function timeouts(value: string): Promise<EtcdLockTimeout[]> {
  const name = await useQueueWith(value);
  const errors = await Promise.all([
    rejection(new Lock(useClient(), name).acquire({ timeout: TIMEOUT })),
    rejection(useManager().request(name, { timeout: TIMEOUT }, async () => {})),
  ]);
  for (const error of errors) if (!(error instanceof EtcdLockTimeout)) throw error;
  return errors as EtcdLockTimeout[];
}

test('the message of a timeout is one printable line, whatever the value of the holder’s entry', async () => {
  const all = await Promise.all(Object.values(HOSTILE).map(async (text) => ({ text, errors: await timeouts(text) })));
  for (const { text, errors } of all)
    for (const error of errors) {
      expect(error.message).toMatch(/; held by a\\u/);
      expect(unprintableIn(error.message)).toEqual([]);
      expect(error.stack?.startsWith(`EtcdWatchTimedOut: ${error.message}\n`)).toBe(true);
      expect(error.holder?.value).toBe(text);
    }
});

test.each([
  ['is longer than any that this package writes', 'v'.repeat(100_000), `${'v'.repeat(500)}…`],
  ['is the longest that `Lock` writes', 'u'.repeat(250), undefined],
  ['is harmless non-ASCII text', HARMLESS, undefined],
])('the message of a timeout shows at most 500 characters of a value that %s', async (_, value, shown = value) => {
  for (const error of await timeouts(value)) {
    expect(error.message).toContain(`; held by ${shown} (`);
    expect(error.holder?.value).toBe(value);
  }
});

describe('an entry whose value is not UTF-8', () => {
  async function useBrokenEntry(): Promise<string> {
    const name = freshName();
    const body = 'value=b%FCro&ttl=600';
    const headers = { 'content-type': 'application/x-www-form-urlencoded' };
    await fetch(`${inject('etcd')}/v2/keys/_locks/${name}`, { method: 'POST', body, headers });
    onTestFinished(async () => void (await raw('DELETE', `/_locks/${name}?recursive=true`)));
    expect(await queueOn(name)).toMatchObject([{ value: 'b\ufffdro' }]);
    return name;
  }

  test('is removed by a forced release', async () => {
    const name = await useBrokenEntry();
    expect(await useManager().release(name, { force: true })).toMatchObject([{ uuid: 'b\ufffdro' }]);
    expect(await queueOn(name)).toEqual([]);
  });

  test('is removed by the command', async () => {
    const name = await useBrokenEntry();
    const [entry] = await queueOn(name);
    const released = await runCli(['release', name, '--key', entry?.key ?? '', '--force'], {
      ETCD_ENDPOINTS: inject('etcd'),
    });
    expect(released).toMatchObject({ code: 0 });
    expect(await queueOn(name)).toEqual([]);
  });

  test('cannot be renewed as the own one', async () => {
    const name = await useBrokenEntry();
    const lock = new Lock(useClient(), name, { uuid: 'b\ufffdro' });
    const error = await rejection(lock.acquire({ timeout: 20 }));
    expect(error).toBeInstanceOf(EtcdValueError);
    expect(String(error)).toContain('its value contains bytes that are not UTF-8');
    expect(await queueOn(name)).toEqual([]);
  });
});
