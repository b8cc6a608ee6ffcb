import { describe, expect, test } from 'vitest';
import { EtcdUnusableAnswer } from '../../../src/errors.ts';
import { type Alter, type AlteredAnswer, useAlteredMember } from '../../support/altered-member.ts';
import { rejection } from '../../support/clients.ts';
import { freshName, queueOn } from '../../support/locks.ts';
import { useManager } from '../../support/managers.ts';
import { until } from '../../support/until.ts';

/** Returns the answer with another body. */
const changed = (
  { body }: AlteredAnswer,
  change: (body: Record<string, unknown>) => object,
): Partial<AlteredAnswer> => ({
  body: JSON.stringify(change(JSON.parse(body))),
});

const refusal = (fields: object): Partial<AlteredAnswer> => ({
  status: 404,
  body: JSON.stringify({ errorCode: 100, message: 'Key not found', cause: '/x', index: 6, ...fields }),
});

const nested = `{"action":"set","node":${'{"key":"/x","createdIndex":1,"modifiedIndex":1,"nodes":['.repeat(100_000)}`;

describe('a holder keeps its lock through another member if one member sends an answer', () => {
  test.each<[string, (answer: AlteredAnswer) => Partial<AlteredAnswer>]>([
    ['with a cause that cannot be converted to a string', () => refusal({ cause: { toString: 1 } })],
    ['with a message that cannot be converted to a string', () => refusal({ message: { toString: 1 } })],
    [
      'with an action that cannot be converted to a string',
      (answer) => changed(answer, (body) => ({ ...body, action: { toString: 1 } })),
    ],
    ['with an invalid index', () => refusal({ index: -0.5 })],
    ['with nodes nested deeper than any key', () => ({ body: nested + ']}'.repeat(100_000).concat('}') })],
    [
      'about another key',
      (answer) => changed(answer, (body) => ({ ...body, node: { ...(body['node'] as object), key: '/other' } })),
    ],
  ])('%s', async (_, alter) => {
    let hostile: number | undefined;
    let renewedElsewhere = false;
    let turned = false;
    /** Whichever member is asked first turns hostile: which one a client prefers depends on how fast each of them answered. */
    const member = (index: number) =>
      useAlteredMember((asked, answer) => {
        if (!turned || !asked.startsWith('PUT ')) return undefined;
        hostile ??= index;
        if (hostile === index) return alter(answer);
        renewedElsewhere = true;
        return undefined;
      });
    const name = freshName();
    const locks = useManager({ ttl: 9 }, { endpoints: [await member(0), await member(1)] });
    const held = await locks.acquire(name);
    turned = true;
    await until(
      () => renewedElsewhere,
      (renewed) => renewed,
    );
    held.assertHeld();
    expect(await queueOn(name)).toMatchObject([{ key: held.key }]);
    await held.release();
  });
});

/** Starts a member with altered answers. `asked` lists the method and path of each request. */
async function recording(alter: Alter): Promise<{ url: string; asked: string[] }> {
  const asked: string[] = [];
  const url = await useAlteredMember((request, answer) => {
    asked.push(request);
    return alter(request, answer);
  });
  return { url, asked };
}

describe('no request is made for a key that a member made up:', () => {
  test('in the answer to an append', async () => {
    const name = freshName();
    const { url, asked } = await recording((request, answer) =>
      request.startsWith('POST ')
        ? changed(answer, (body) => ({
            ...body,
            node: { ...(body['node'] as object), key: '/other/00000000000000000001' },
          }))
        : undefined,
    );
    const error = await rejection(useManager({ ttl: 600 }, { endpoints: url }).acquire(name), EtcdUnusableAnswer);
    expect(error.message).toContain('/other/00000000000000000001');
    await until(
      () => queueOn(name),
      (queue) => queue.length === 0,
    );
    expect(asked.filter((request) => request.includes('/other'))).toEqual([]);
  });

  test('in a listing, as a leftover of the same identity', async () => {
    const name = freshName();
    const left = { key: '/other/1', value: 'id:me:u1', createdIndex: 1, modifiedIndex: 1 };
    const { url, asked } = await recording((request, answer) =>
      request.startsWith('GET ') && answer.status === 200
        ? changed(answer, (body) => ({ ...body, node: { ...(body['node'] as object), nodes: [left] } }))
        : undefined,
    );
    await useManager({ ttl: 600 }).request(name, () => undefined); // creates the directory
    const locks = useManager({ ttl: 600, identity: 'me' }, { endpoints: url });
    await rejection(locks.acquire(name, { ifAvailable: true }), EtcdUnusableAnswer);
    expect(asked.filter((request) => request.includes('/other'))).toEqual([]);
  });
});
