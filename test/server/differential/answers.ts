import { expect } from 'vitest';
import type { Both } from './both.ts';
import type { Asked, Wanted } from './exchange.ts';
import { masked } from './mapping.ts';

export const get = (target: string): Wanted => ({ method: 'GET', target });
export const put = (target: string, form: string): Wanted => ({ method: 'PUT', target, form });

/** The parts of an answer that must be byte for byte the same on both servers. */
export async function answerOf(server: Asked, wanted: Wanted) {
  const exchange = await server.ask(wanted);
  const { 'content-type': type, location, allow, 'x-etcd-index': at } = exchange.headers;
  return { status: exchange.status, type, location, allow, at, body: masked(await exchange.whole()) };
}

/** Sends the requests one by one to both servers, and expects the same answers. Returns the bodies. */
export async function sameAnswers({ real, embedded }: Both, requests: readonly Wanted[]): Promise<string[]> {
  const bodies: string[] = [];
  for (const wanted of requests) {
    const [theirs, ours] = await Promise.all([answerOf(real, wanted), answerOf(embedded, wanted)]);
    expect(ours, `${wanted.method} ${wanted.target} ${wanted.type ?? ''}`).toEqual(theirs);
    bodies.push(theirs.body);
  }
  return bodies;
}
