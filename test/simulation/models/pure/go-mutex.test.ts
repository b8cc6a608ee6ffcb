import { expect, test, vi } from 'vitest';
import type { GoAnswer, GoCalls, GoKv } from '../go-client.ts';
import { GoMutex, GoSessionExpired } from '../go-mutex.ts';
import { GoSession } from '../go-session.ts';

/** 0x2a in the key of an entry. */
const LEASE = '42';

const b64 = (text: string): string => Buffer.from(text).toString('base64');
const kv = (key: string, created: number): GoKv => ({
  key: b64(key),
  create_revision: `${created}`,
  mod_revision: `${created}`,
});
const own = kv('n/2a', 7);
const first = kv('n/1', 3);
const middle = kv('n/2', 5);

/** Answers of the gateway at a revision. */
const at = (revision: number, rest: Partial<GoAnswer> = {}): GoAnswer => ({
  header: { revision: `${revision}` },
  ...rest,
});
const appended = (owner: GoKv, isNew = true): GoAnswer =>
  at(isNew ? 7 : 9, {
    ...(isNew ? { succeeded: true } : {}),
    responses: [isNew ? {} : { response_range: { kvs: [own] } }, { response_range: { kvs: [owner] } }],
  });
const deletion = ({ key }: GoKv, revision: number): GoAnswer =>
  at(revision, { events: [{ type: 'DELETE', kv: { key, create_revision: '0', mod_revision: `${revision}` } }] });

/** Requests in short: what is not the same in all of them. */
const TXN = 'txn n/2a = 0: put n/2a on 42, first of n/..n0; else get n/2a, first of n/..n0';
const newest = (created: number): string => `range newest of n/..n0 up to ${created}`;
const GET = 'range n/2a';
const UNLOCK = 'deleterange n/2a';

const TABLE: Readonly<Record<string, { answers: GoAnswer[]; sends: string[]; token?: bigint; looksAgain?: boolean }>> =
  {
    'a free lock is held after one request': { answers: [appended(own)], sends: [TXN], token: 7n },
    'an entry of the session is used again': { answers: [appended(own, false)], sends: [TXN], token: 9n },
    'a waiter watches the newest key before its own, looks again, and looks for its own key': {
      answers: [
        appended(first),
        at(8, { kvs: [middle] }),
        deletion(middle, 9),
        at(9, { kvs: [first] }),
        deletion(first, 12),
        at(13),
        at(14, { kvs: [own] }),
      ],
      sends: [TXN, newest(6), 'watch n/2 from 8', newest(6), 'watch n/1 from 9', newest(6), GET],
      token: 14n,
    },
    'up to 3.4, a waiter does not look for its own key': {
      answers: [appended(first), at(8)],
      sends: [TXN, newest(6)],
      token: 8n,
      looksAgain: false,
    },
    'from 3.5 on, a waiter whose key has gone does not hold the lock': {
      answers: [appended(first), at(8), at(8)],
      sends: [TXN, newest(6), GET],
    },
  };

for (const [title, { answers, sends, token, looksAgain = true }] of Object.entries(TABLE))
  test(`the model of Go's Mutex: ${title}`, async () => {
    const { client, sent } = gateway(answers);
    const session = await GoSession.open(client, 5, () => 0);
    const mutex = new GoMutex(session, 'n', looksAgain);
    if (token === undefined) await expect(mutex.lock()).rejects.toBeInstanceOf(GoSessionExpired);
    else expect(await mutex.lock()).toBe(token);
    await mutex.unlock();
    await session.close();
    expect(sent).toEqual(['grant 5', 'keepalive 42', ...sends, UNLOCK, 'revoke 42']);
  });

test("the model of Go's Session: it ends when a keep-alive is answered without a TTL", async () => {
  const session = await GoSession.open(gateway([], at(1)).client, 5, () => 0);
  await vi.waitFor(() => expect(session.done.aborted).toBe(true));
});

test("the model of Go's Session: its lease may have ended a TTL after the last keep-alive was sent", async () => {
  let time = 0;
  const session = await GoSession.open(gateway([]).client, 5, () => time);
  time = 4999;
  expect(session.isOverdue).toBe(false);
  time = 5000;
  expect(session.isOverdue).toBe(true);
  session.orphan();
});

/** A gateway that grants and keeps a lease alive, and gives these answers to all else. */
function gateway(answers: GoAnswer[], kept: GoAnswer = at(1, { TTL: '5' })): { client: GoCalls; sent: string[] } {
  const sent: string[] = [];
  const next = (path: string, body: object): GoAnswer => {
    sent.push(inShort(path, body));
    if (path === '/v3/lease/grant') return at(1, { ID: LEASE, TTL: '5' });
    if (path === '/v3/lease/keepalive') return { ...at(1), result: kept };
    if (path === '/v3/lease/revoke' || path === '/v3/kv/deleterange') return at(20);
    const answer = answers.shift();
    if (!answer) throw new Error(`the model sends more than it should: ${sent.at(-1)}`);
    return answer;
  };
  const client: GoCalls = {
    call: async (path, body) => ({ ...next(path, body), sentAt: 0 }),
    async *stream(path, body) {
      yield next(path, body);
    },
  };
  return { client, sent };
}

/** What the requests of the recipe are made of. */
interface Body {
  readonly TTL?: number;
  readonly ID?: string;
  readonly key?: string;
  readonly range_end?: string;
  readonly sort_target?: string;
  readonly sort_order?: string;
  readonly limit?: string;
  readonly max_create_revision?: string;
  readonly create_request?: { key: string; start_revision: string };
  readonly compare?: { key: string; target: string; result: string; create_revision: string }[];
  readonly success?: Operation[];
  readonly failure?: Operation[];
}

interface Operation {
  readonly request_put?: { key: string; value: string; lease: string };
  readonly request_range?: Body;
}

function inShort(path: string, body: Body): string {
  const name = path.replace(/.*\//, '');
  const {
    compare: [{ key, target, result, create_revision } = { key: '', target: '', result: '', create_revision: '' }] = [],
  } = body;
  if (name === 'grant') return `grant ${body.TTL}`;
  if (body.ID !== undefined) return `${name} ${body.ID}`;
  if (body.create_request) return `watch ${text(body.create_request.key)} from ${body.create_request.start_revision}`;
  if (!body.compare) return `${name} ${rangeOf(body)}`;
  const operations = [body.success, body.failure].map((all = []) => all.map(operationOf).join(', ')).join('; else ');
  expect([target, result]).toEqual(['CREATE', 'EQUAL']);
  return `txn ${text(key)} = ${create_revision}: ${operations}`;
}

function operationOf({ request_put: put, request_range: range = {} }: Operation): string {
  if (!put) return range.range_end === undefined ? `get ${text(range.key)}` : rangeOf(range);
  expect(put.value).toBe('');
  return `put ${text(put.key)} on ${put.lease}`;
}

function rangeOf({ key, range_end, sort_target, sort_order, limit, max_create_revision }: Body): string {
  if (range_end === undefined) return text(key);
  expect([sort_target, limit]).toEqual(['CREATE', '1']);
  const upTo = max_create_revision === undefined ? '' : ` up to ${max_create_revision}`;
  return `${sort_order === 'ASCEND' ? 'first' : 'newest'} of ${text(key)}..${text(range_end)}${upTo}`;
}

const text = (b64ed = ''): string => Buffer.from(b64ed, 'base64').toString();
