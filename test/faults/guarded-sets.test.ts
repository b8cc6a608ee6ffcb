import { expect, onTestFinished, test } from 'vitest';
import { startGuardedSets } from './guarded-sets.ts';

async function useSets() {
  const sets = await startGuardedSets();
  onTestFinished(() => sets.stop());
  const ask = async (method: string, set: string, query: Record<string, string | number>) => {
    const text = new URLSearchParams(
      Object.entries(query).map(([name, value]): [string, string] => [name, String(value)]),
    );
    const answer = await fetch(`${sets.url}/x/${set}?${text}`, { method });
    return { status: answer.status, text: await answer.text() };
  };
  return { sets, ask };
}

/** The earlier holder reads, the later holder reads and writes, then the earlier holder writes. */
async function interleave(set: 'fenced' | 'plain') {
  const { sets, ask } = await useSets();
  const early = await ask('GET', set, { token: 9 });
  const late = await ask('GET', set, { token: 10 });
  await ask('POST', set, { token: 10, of: late.text, addition: 'late' });
  const { status } = await ask('POST', set, { token: 9, of: early.text, addition: 'early' });
  return { status, result: sets.result('x', set) };
}

test('a plain set loses an addition that an earlier holder overwrites', async () => {
  expect(await interleave('plain')).toEqual({ status: 200, result: { written: 2, lost: ['late'] } });
});

test('a fenced set refuses a write of an earlier holder', async () => {
  expect(await interleave('fenced')).toEqual({ status: 409, result: { written: 1, lost: [] } });
});

test('a fenced set refuses a write of an earlier holder once a later holder has read the set', async () => {
  const { sets, ask } = await useSets();
  const early = await ask('GET', 'fenced', { token: 9 });
  await ask('GET', 'fenced', { token: 10 });
  expect((await ask('POST', 'fenced', { token: 9, of: early.text, addition: 'early' })).status).toBe(409);
  expect(sets.result('x', 'fenced')).toEqual({ written: 0, lost: [] });
});

test('a fenced set keeps all additions that holders write one after the other', async () => {
  const { sets, ask } = await useSets();
  for (const token of [1, 2, 3]) {
    const { text } = await ask('GET', 'fenced', { token });
    await ask('POST', 'fenced', { token, of: text, addition: `addition ${token}` });
  }
  expect(sets.result('x', 'fenced')).toEqual({ written: 3, lost: [] });
});
