import { expect } from 'vitest';
import type { Exchange as Recorded } from '../../../compat/transcript.ts';
import type { Answer, AnswerBody, ComparableNode as Node } from './replay.ts';

type Change = (answer: Answer, request: Recorded['request']) => Answer;

/** A difference between etcd v2 and a bridge: both columns of its row in docs/bridge.md. */
export interface Difference {
  readonly etcd: string;
  readonly bridge: string;
  /** Returns what a bridge answers in place of etcd. Absent: no recorded answer shows the difference. */
  readonly change?: Change;
}

const PREFIXES = ['/_locks', '/apps/locks'];

/** All differences, in the order of the table. */
export const DIFFERENCES: readonly Difference[] = [
  {
    etcd: 'Any key can be used.',
    bridge: 'Only locks. Anything else is refused with code 107, and the cause names the bridge.',
    change(answer, { method, path }) {
      const key = keyIn(path);
      const isOfLock = ({ key = '' }: Node) =>
        PREFIXES.some((prefix) => isBelow(key, prefix) && !isEntryOf(prefix, key));
      const isListing = method === 'GET' && PREFIXES.includes(key);
      if (isListing || isOfLock({ key })) return withChildren(answer, (child) => (isOfLock(child) ? [child] : []));
      return refusal(answer, { errorCode: 107, message: 'Root is read only', cause: /serves only locks$/ });
    },
  },
  {
    etcd: "A key that has expired is created again by python-etcd's renewal.",
    bridge:
      'The renewal fails with code 100. The entry is not created again, so two clients cannot hold the lock at the same time.',
  },
  {
    etcd: 'The same value can be appended twice.',
    bridge:
      'The second append finds the first entry. So a request that python-etcd repeats at another server makes no second entry.',
  },
  {
    etcd: 'A TTL may be 1 second.',
    bridge: 'etcd v3 raises it to 2 seconds or more, depending on its election timeout.',
  },
  {
    etcd: 'An entry with a TTL of 0 expires at once.',
    bridge: 'A TTL of 0 is refused with code 202.',
    change(answer, { body }) {
      const isExpiring = ({ ttl, expiration }: Node) => expiration !== undefined && ttl === undefined;
      if (!body?.endsWith('&ttl=0')) return withChildren(answer, (child) => (isExpiring(child) ? [] : [child]));
      return refusal(answer, { errorCode: 202, message: /TTL .* is not a number$/, cause: /^TTL must be from 1 to/ });
    },
  },
  {
    etcd: 'A listing shows the TTL of each entry.',
    bridge: 'Only a read of one entry shows its TTL.',
    change: (answer) =>
      withPrevious(
        withChildren(answer, (child) => [withoutTtl(child)]),
        withoutTtl,
      ),
  },
  {
    etcd: 'A renewal gives an entry another `createdIndex`.',
    bridge: '`createdIndex` is always the number in the name of the entry.',
    change(answer) {
      const named = (node: Node): Node => (node.dir ? node : { ...node, createdIndex: Number(node.key?.slice(-20)) });
      return withPrevious(
        withNode(
          withChildren(answer, (child) => [named(child)]),
          named,
        ),
        named,
      );
    },
  },
  {
    etcd: '`expire` and `delete` are two kinds of events.',
    bridge: 'Both are `delete`.',
    change: (answer) => withBody(answer, (body) => (body.action === 'expire' ? { ...body, action: 'delete' } : body)),
  },
  {
    etcd: 'The event of a removal contains the removed entry.',
    bridge: 'It contains only the key of the entry.',
    change: (answer, { path }) =>
      path.includes('wait=true') ? withBody(answer, ({ prevNode: _, ...body }) => body) : answer,
  },
  {
    etcd: 'A lock has a directory from its first use on.',
    bridge: 'It has a directory at any time. Listings of other directories contain the directory while it is in use.',
    change(answer, { method, path }) {
      const key = keyIn(path);
      const isEmpty = ({ dir, nodes }: Node) => dir === true && nodes === undefined;
      if (method !== 'GET' || answer.status !== 404 || /\/\d{20}$/.test(key))
        return withChildren(answer, (child) => (isEmpty(child) ? [] : [child]));
      const node = { key, dir: true, createdIndex: 'some index', modifiedIndex: 'some index' };
      return { ...answer, status: 200, body: { action: 'get', node } };
    },
  },
  {
    etcd: 'A name may be of every length.',
    bridge:
      'The name of a lock has at most 750 bytes, as with the clients of this package. Listings leave out entries with longer names.',
  },
  {
    etcd: 'A directory can be removed.',
    bridge: 'Only entries can be removed, one by one.',
  },
  {
    etcd: 'The cause of code 100 is the first part of the key that does not exist.',
    bridge: 'The cause is the whole key.',
    change: (answer, { path }) =>
      withBody(answer, (body) => (body.errorCode === 100 ? { ...body, cause: keyIn(path) } : body)),
  },
];

const isBelow = (key: string, directory: string): boolean => key.startsWith(`${directory}/`);

/** Whether a key is an entry directly in a directory. */
const isEntryOf = (directory: string, key: string): boolean =>
  isBelow(key, directory) && /^\/\d{20}$/.test(key.slice(directory.length));

const keyIn = (path: string): string => {
  const [key = ''] = path.replace(/^\/v2\/keys/, '').split('?');
  return decodeURIComponent(key).replace(/\/$/, '') || '/';
};

interface Refusal {
  readonly errorCode: number;
  readonly message: string | RegExp;
  readonly cause: RegExp;
}

const refusal = (answer: Answer, { errorCode, message, cause }: Refusal): Answer => ({
  ...answer,
  status: 400,
  body: {
    errorCode,
    message: expect.stringMatching(message),
    cause: expect.stringMatching(cause),
    index: 'some index',
  },
});

const withBody = (answer: Answer, change: (body: AnswerBody) => AnswerBody): Answer =>
  typeof answer.body === 'string' ? answer : { ...answer, body: change(answer.body) };

const withNode = (answer: Answer, change: (node: Node) => Node): Answer =>
  withBody(answer, (body) => (body.node ? { ...body, node: change(body.node) } : body));

const withPrevious = (answer: Answer, change: (node: Node) => Node): Answer =>
  withBody(answer, (body) => (body.prevNode ? { ...body, prevNode: change(body.prevNode) } : body));

/** Changes every node of a listing except the top one, those in directories first. A directory without nodes has no `nodes`. */
const withChildren = (answer: Answer, change: (child: Node) => readonly Node[]): Answer => {
  const changed = ({ nodes, ...node }: Node): Node => {
    const left = nodes?.map(changed).flatMap(change) ?? [];
    return left.length === 0 ? node : { ...node, nodes: left };
  };
  return withNode(answer, changed);
};

const withoutTtl = ({ ttl: _, expiration: __, ...node }: Node): Node => node;
