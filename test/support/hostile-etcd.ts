import { expect } from 'vitest';
import { expectPrintable, HARMLESS, HOSTILE } from './hostile.ts';
import { raw } from './locks.ts';
import { serveOpenly } from './open-server.ts';
import type { ScriptResult } from './script.ts';

export const TEXTS = [...Object.values(HOSTILE), HARMLESS];
/** All in one that a command line can carry. */
export const ALL = TEXTS.filter((text) => !text.includes('\0')).join(' ');
const OURS = /^(etcd-v2-lock: |usage: )/;

/** An etcd where others wrote hostile names, keys and values: "queue" is taken, "free" is not, "empty" directories are left over. */
export async function useHostileEtcd(): Promise<string> {
  const { url } = await serveOpenly();
  const write = async (method: string, path: string, form?: Record<string, string>) => {
    const { status } = await raw(method, path.split('/').map(encodeURIComponent).join('/'), form, url);
    expect(status).toBeLessThan(300);
  };
  for (const text of TEXTS) {
    await write('POST', '/_locks/queue', { value: `shared:${text}`, ttl: '600' });
    await write('POST', '/_locks/queue', { value: `id:${text}:u1`, ttl: '' });
    await write('POST', `/_locks/of/${text}`, { value: text, ttl: '600' });
    await write('PUT', `/_locks/queue/${text}`, { value: text });
    await write('PUT', `/_locks/empty/${text}/x`, { value: text });
    await write('DELETE', `/_locks/empty/${text}/x`);
  }
  return url;
}

/** Every line on stderr is one of ours. */
export function expectSafe({ stdout, stderr }: ScriptResult): void {
  expectPrintable(stdout);
  expectPrintable(stderr, OURS);
}

/** Every text in a JSON value, keys of objects too. */
const textsIn = (value: unknown): string[] => {
  if (typeof value === 'string') return [value];
  if (typeof value !== 'object' || value === null) return [];
  return Object.entries(value).flatMap(([key, inner]) => [key, ...textsIn(inner)]);
};

/** Texts in lines of JSON. */
export const textsOf = (stdout: string): string[] =>
  textsIn(
    stdout
      .trimEnd()
      .split('\n')
      .map((line) => JSON.parse(line)),
  );
