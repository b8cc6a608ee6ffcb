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

test('a timeout shows the beginning of a value that is longer than any of this package', async () => {
  const [identity, uuid] = ['i'.repeat(200), 'u'.repeat(250)];
  for (const [value, shown] of [
    [`shared:id:${identity}:${uuid}`, `shared:id:${identity}:${uuid}`],
    ['v'.repeat(100_000), `${'v'.repeat(500)}…`],
  ] as const) {
    const name = await useQueueWith(value);
    const error = await rejection(new Lock(useClient(), name).acquire({ timeout: 0.1 }));
    expect(error).toHaveProperty('message', expect.stringContaining(`; held by ${shown} (`));
    expect(error).toHaveProperty('holder.value', value);
  }
});

test('a timeout shows a value beyond ASCII as it is', async () => {
  const name = await useQueueWith(HARMLESS);
  const error = await rejection(new Lock(useClient(), name).acquire({ timeout: 0.1 }));
  expect(error).toHaveProperty('message', expect.stringContaining(`; held by ${HARMLESS} (`));
});
