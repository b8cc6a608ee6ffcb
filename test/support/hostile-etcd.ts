import { expect } from 'vitest';
import { expectPrintable, HARMLESS, HOSTILE } from './hostile.ts';
import { raw } from './locks.ts';
import { serveOpenly } from './open-server.ts';
import type { ScriptResult } from './script.ts';

export const TEXTS = [...Object.values(HOSTILE), HARMLESS];
/** All texts that a command line can contain, in one. */
export const ALL = TEXTS.filter((text) => !text.includes('\0')).join(' ');
const OURS = /^(etcd-v2-lock: |usage: )/;

/** Starts an etcd with hostile names, keys and values: "queue" is held, "free" is not, "empty" has leftover directories. */
export async function useHostileEtcd(): Promise<string> {
  const { url } = await serveOpenly();
  const write = async (method: string, path: string, form?: Record<string, string>) => {
    const { status } = await raw(method, path.split('/').map(encodeURIComponent).join('/'), form, url);
    expect(status).toBeLessThan(300);
  };
  for (const text of TEXTS) {
    await write('POST', '/_locks/queue', { value: `shared:${text}`, ttl: '600' });
    await write('POST', '/_locks/queue', { value: `id:${text}:u1`, ttl: '' });
    await write('POST', '/_locks/queue', { value: `${'0'.repeat(32)}@${encodeURIComponent(text)}`, ttl: '600' });
    await write('POST', `/_locks/labelled/${text}`, { value: `${'0'.repeat(32)}@${text}`, ttl: '600' });
    await write('POST', `/_locks/of/${text}`, { value: text, ttl: '600' });
    await write('PUT', `/_locks/queue/${text}`, { value: text });
    await write('PUT', `/_locks/empty/${text}/x`, { value: text });
    await write('DELETE', `/_locks/empty/${text}/x`);
  }
  return url;
}

/** Expects printable output, and that every line on stderr is ours. */
export function expectSafe({ stdout, stderr }: ScriptResult): void {
  expectPrintable(stdout);
  expectPrintable(stderr, OURS);
}

/** Every string in a JSON value, including the keys of objects. */
const textsIn = (value: unknown): string[] => {
  if (typeof value === 'string') return [value];
  if (typeof value !== 'object' || value === null) return [];
  return Object.entries(value).flatMap(([key, inner]) => [key, ...textsIn(inner)]);
};

/** Every string in lines of JSON. */
export const textsOf = (stdout: string): string[] =>
  textsIn(
    stdout
      .trimEnd()
      .split('\n')
      .map((line) => JSON.parse(line)),
  );
