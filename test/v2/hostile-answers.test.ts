import { describe, expect, test } from 'vitest';
import { EtcdClusterIdChanged, type EtcdException } from '../../src/errors.ts';
import { connect, serve } from '../support/clients.ts';
import { HOSTILE, unprintableIn } from '../support/hostile.ts';
import { rejection } from '../support/locks.ts';
import { answer, httpAnswer } from '../support/tcp-server.ts';
import { ANSWER_HEADERS, failed, got, rawAnswer } from '../support/v2-answers.ts';

/** Returns the error of a read to which the servers give these answers. */
async function failure(...answers: readonly string[]): Promise<EtcdException> {
  const servers = await Promise.all(answers.map((raw) => serve(answer(raw))));
  const client = connect({
    endpoints: servers.map(({ url }) => url),
    readTimeout: 2,
    expectedClusterId: 'cdf818194e3a8c32',
  });
  return (await rejection(client.get('/_locks/x'))) as EtcdException;
}

const page = (status: number, body: string): string => httpAnswer(status, { 'content-type': 'text/html' }, body);

describe.each(Object.entries(HOSTILE))('an answer that %s', (_, text) => {
  test.each<[string, string]>([
    ['refuses with such text', rawAnswer(403, failed(107, text, text))],
    ['has an unknown code and such text', rawAnswer(400, failed(999, text, text))],
    ['has failed with such text', rawAnswer(500, failed(300, text, text))],
    ['is a page', page(200, `<html>${text}</html>`)],
    ['is a page that refuses', page(401, text)],
    ['is a page that has failed', page(502, text)],
    ['has such an index', rawAnswer(200, got('/_locks/x', { createdIndex: `${text}1` }))],
  ])('becomes an error with one printable line if it %s', async (_, raw) => {
    const error = await failure(raw);
    expect(unprintableIn(error.message)).toEqual([]);
    expect(error.message).toMatch(/\ba/);
    const round = await failure(raw, page(503, text));
    expect(unprintableIn(round.message)).toEqual([]);
    for (const { error } of round.failures) expect(unprintableIn(error.message)).toEqual([]);
  });

  test('keeps its text as received in the field `cause`', async () => {
    const error = await failure(rawAnswer(403, failed(107, text, text)));
    expect(error).toMatchObject({ name: 'EtcdRootReadOnly', cause: text });
  });
});

test('the message about another cluster is printable', async () => {
  const headers = { ...ANSWER_HEADERS, 'x-etcd-cluster-id': 'a\u009b31mb' };
  const answering = await serve((socket) => {
    socket.write(Buffer.from(rawAnswer(200, got('/_locks/x'), headers), 'latin1'));
  });
  const client = connect({ endpoints: answering.url, expectedClusterId: 'abc' });
  const error = await rejection(client.get('/_locks/x'));
  expect(error).toBeInstanceOf(EtcdClusterIdChanged);
  expect(error).toHaveProperty('message', expect.stringContaining(String.raw`cluster a\u009b31mb answered`));
});
