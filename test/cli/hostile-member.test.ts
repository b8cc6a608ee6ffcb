import { expect, test } from 'vitest';
import { type Alter, useAlteredMember } from '../support/altered-member.ts';
import { diagnose, troubles } from '../support/doctor.ts';
import { raw } from '../support/locks.ts';
import { ask, enqueue, useLockName } from '../support/queues.ts';

/** Starts a member that replaces a key in its responses, and records the requests it gets. */
async function renaming(method: string, from: RegExp, to: string): Promise<{ url: string; asked: string[] }> {
  const asked: string[] = [];
  const alter: Alter = (request, { body }) => {
    asked.push(request);
    return request.startsWith(method) ? { body: body.replaceAll(from, to) } : undefined;
  };
  return { url: await useAlteredMember(alter), asked };
}

test.each(['/other/00000000000000000001', '/_etcd-v2-lock-doctor/../other', '/_etcd-v2-lock-doctor'])(
  'doctor does not remove %s if a member reports it as the test key',
  async (key) => {
    const { url, asked } = await renaming('POST ', /\/_etcd-v2-lock-doctor\/\d+/g, key);
    const diagnosis = await diagnose(url, ['--ttl', '300']);
    // Other tests have locks in both stores of this etcd.
    expect(troubles(diagnosis).filter(({ about }) => about !== 'stores')).toMatchObject([
      { about: 'test-key', text: expect.stringContaining('is about') },
    ]);
    expect(asked.filter((request) => request.startsWith('DELETE'))).toEqual([
      expect.stringMatching(/^DELETE \/v2\/keys\/_locks\/[\w-]+$/),
    ]);
  },
);

test('doctor removes the test key only if it has the value that this run wrote', async () => {
  const conditions: (string | null)[] = [];
  const alter: Alter = (request, _, query) => {
    if (/^DELETE .*-doctor\/\d+$/.test(request)) conditions.push(query?.get('prevValue') ?? null);
    return undefined;
  };
  const url = await useAlteredMember(alter);
  for (let run = 0; run < 2; run += 1) expect((await diagnose(url, ['--ttl', '300'])).code).toBe(0);
  expect(conditions).toEqual(Array(2).fill(expect.stringMatching(/^doctor [\da-f-]{36}$/)));
  expect(new Set(conditions).size).toBe(2);
});

test.each(['/other', '/_locks/../other', '/_locks'])(
  'prune does not remove the directory %s if a member reports it in a listing',
  async (key) => {
    const name = useLockName();
    await raw('DELETE', await enqueue(name));
    const { url, asked } = await renaming('GET ', new RegExp(`/_locks/${name}`, 'g'), key);
    const { code, stdout } = await ask(['prune', name], url);
    expect({ code, stdout }).toEqual({ code: 69, stdout: '' });
    expect(asked.filter((request) => request.startsWith('DELETE'))).toEqual([]);
  },
);
