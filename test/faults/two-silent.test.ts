import { describe, test } from 'vitest';
import { moment } from '../support/stalls/stalls.mjs';
import { Contest, isAppend, isListing, OURS } from './contest.ts';
import { direct } from './lines.ts';
import { recovered, silent } from './recovered.ts';
import { STORE } from './stores/tested.ts';
import type { Request } from './tcp-proxy.ts';
import { roles, useCluster } from './use-cluster.ts';

/** Seconds: the poll cap is a third of it, long enough to ask three members on a busy machine. */
const TTL = 15;

const cluster = useCluster({ steady: true });

/** On etcd v3 the append reads the queue, and a client asks a member for its version before that. */
const isFirstRead = STORE.api === 'v2' ? isListing : ({ path }: Request): boolean => path === '/version';

describe.for<[string, { readonly reset: boolean }]>([
  ['the polled member is isolated, and the next member is silent', { reset: false }],
  ['the poll is reset, one of the next two members is isolated, and the other is silent', { reset: true }],
])('%s', ([, { reset }]) => {
  test.for(OURS)('a released lock goes to %s within a poll cap', async (kind, context) => {
    const { leader, follower, other } = await roles(cluster());
    const contest = new Contest(cluster());
    const holder = await contest.take('Lock', { by: [direct(leader)], ttl: 60 });
    const by = reset ? [leader, follower, other] : [follower, other, leader];
    const { taken: waiting } = await contest.wait(kind, { by, ttl: TTL });
    // Two members fail, each in another way: only the leader still works.
    follower.isolate();
    other.proxy.blackHole('both');
    if (reset) leader.proxy.cut();
    const released = moment();
    await holder.give();
    const next = await waiting;
    recovered(context, { from: released, to: next.at, limit: silent(TTL) });
    await next.give();
    await contest.end();
  });
});

test.for(OURS)(
  '%s acquires a free lock within a poll cap although its first read is never answered and the next member is silent',
  async (kind, context) => {
    const { leader, follower, other } = await roles(cluster());
    const contest = new Contest(cluster());
    other.proxy.blackHole('both');
    const swallowed = follower.proxy.swallow(isFirstRead);
    const asked = moment();
    const held = await contest.take(kind, { by: [follower, other, leader], ttl: TTL });
    await swallowed;
    recovered(context, { from: asked, to: held.at, limit: silent(TTL) });
    await held.give();
    await contest.end();
  },
);

test.for(OURS)(
  '%s acquires a free lock within a poll cap although its append is never answered and the next member is silent',
  async (kind, context) => {
    const { leader, follower, other } = await roles(cluster());
    const contest = new Contest(cluster());
    const terms = { by: [follower, other, leader], ttl: TTL };
    const client = await contest.ready(terms);
    other.proxy.blackHole('both');
    const queued = follower.proxy.swallow(isAppend);
    const taking = contest.take(kind, { ...terms, client });
    await queued;
    const first = moment();
    const held = await taking;
    recovered(context, { from: first, to: held.at, limit: silent(TTL) });
    await held.give();
    await contest.end();
  },
);
