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

/** One reads, another one reads and writes, then the first one writes. */
async function interleave(set: 'fenced' | 'plain') {
  const { sets, ask } = await useSets();
  const early = await ask('GET', set, { token: 9 });
  const late = await ask('GET', set, { token: 10 });
  await ask('POST', set, { token: 10, of: late.text, addition: 'late' });
  const { status } = await ask('POST', set, { token: 9, of: early.text, addition: 'early' });
  return { status, result: sets.result('x', set) };
}

test('a set without a fence loses what a late writer has not read', async () => {
  expect(await interleave('plain')).toEqual({ status: 200, result: { written: 2, lost: ['late'] } });
});

test('a fenced set refuses the late writer', async () => {
  expect(await interleave('fenced')).toEqual({ status: 409, result: { written: 1, lost: [] } });
});

test('a fenced set refuses a writer that a later holder has read past', async () => {
  const { sets, ask } = await useSets();
  const early = await ask('GET', 'fenced', { token: 9 });
  await ask('GET', 'fenced', { token: 10 });
  expect((await ask('POST', 'fenced', { token: 9, of: early.text, addition: 'early' })).status).toBe(409);
  expect(sets.result('x', 'fenced')).toEqual({ written: 0, lost: [] });
});

test('what is written in turn is all there', async () => {
  const { sets, ask } = await useSets();
  for (const token of [1, 2, 3]) {
    const { text } = await ask('GET', 'fenced', { token });
    await ask('POST', 'fenced', { token, of: text, addition: `addition ${token}` });
  }
  expect(sets.result('x', 'fenced')).toEqual({ written: 3, lost: [] });
});
