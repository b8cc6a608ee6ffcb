import { expect, onTestFinished, test } from 'vitest';
import { EtcdWatchTimedOut, Lock } from '../../src/index.ts';
import { HARMLESS, HOSTILE, unprintableIn } from '../support/hostile.ts';
import { freshName, raw, rejection, useClient } from '../support/locks.ts';
import { useManager } from '../support/managers.ts';

/** Puts an entry with this value into a queue, as anyone could. */
async function useQueueWith(value: string): Promise<string> {
  const name = freshName();
  await raw('POST', `/_locks/${name}`, { value, ttl: '600' });
  onTestFinished(async () => void (await raw('DELETE', `/_locks/${name}?recursive=true`)));
  return name;
}

test.each(Object.entries(HOSTILE))(
  'a timeout tells of a holder whose value %s in one printable line',
  async (_, text) => {
    const name = await useQueueWith(text);
    for (const error of [
      await rejection(new Lock(useClient(), name).acquire({ timeout: 0.1 })),
      await rejection(useManager().request(name, { timeout: 0.1 }, async () => {})),
    ]) {
      if (!(error instanceof EtcdWatchTimedOut)) throw error;
      expect(error.message).toMatch(/; held by a\\u/);
      expect(unprintableIn(error.message)).toEqual([]);
      expect(error.stack?.startsWith(`EtcdWatchTimedOut: ${error.message}\n`)).toBe(true);
      expect(error.holder?.value).toBe(text);
    }
  },
);

test('a timeout shows a value beyond ASCII as it is', async () => {
  const name = await useQueueWith(HARMLESS);
  const error = await rejection(new Lock(useClient(), name).acquire({ timeout: 0.1 }));
  expect(error).toHaveProperty('message', expect.stringContaining(`; held by ${HARMLESS} (`));
});
