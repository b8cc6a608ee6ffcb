import { setTimeout as sleep } from 'node:timers/promises';

/** Milliseconds after which a TTL of at most one second has passed, and etcd has removed the key. */
const EXPIRED = 2500;

const NAMES = [
  ...['with space', 'umläut', 'a/b/c', 'dots.and-dashes_~', 'percent%41', 'plus+sign', 'q?x=1', 'hash#tag', "quote'"],
  ...['semi;colon', 'at@colon:eq=amp&', '中文', '/lead', 'trail/', 'a//b', 'back\\slash', '[x]{y}|^`<>"'],
  ...['.', '..', 'a/../b'],
];

/** The second of the scenarios leaves its lock to the third. */
let released;

/**
 * What the locks do, by the title of the scenario. A title names python-etcd's calls. `polls(n)` waits until n requests wait for
 * an event.
 */
export const scenarios = {
  async 'uncontended: acquire(lock_ttl=60) then release()'({ lock }) {
    const a = await lock('s1');
    await a.acquire(60);
    await a.isAcquired();
    await a.release();
  },
  async 'acquire twice on one Lock renews the TTL'({ lock }) {
    released = await lock('s2');
    await released.acquire(60);
    await released.acquire(90);
    await released.release();
  },
  async 'release twice'() {
    await released.release();
  },
  async 'release without ever acquiring'({ lock }) {
    const a = await lock('s3');
    await a.release();
  },
  async 'contended: acquire(blocking=False) keeps its place, polled until the owner releases'({ lock }) {
    const [a, b] = [await lock('s4'), await lock('s4')];
    await a.acquire(60);
    await b.acquire(60, { blocking: false });
    await b.acquire(60, { blocking: false });
    await a.release();
    await b.acquire(60, { blocking: false });
    await b.release();
  },
  async 'contended: blocking acquire, handed over by release'({ lock, polls }) {
    const [a, b] = [await lock('s5'), await lock('s5')];
    await a.acquire(60);
    const waiting = b.acquire(60);
    await polls(1);
    await a.release();
    await waiting;
    await b.release();
  },
  async 'three contenders, the middle one gives up by release'({ lock, polls }) {
    const [a, b, c] = [await lock('s6'), await lock('s6'), await lock('s6')];
    await a.acquire(60);
    await b.acquire(60, { blocking: false });
    const waiting = c.acquire(60);
    await polls(1);
    await b.release();
    await polls(1);
    await a.release();
    await waiting;
    await c.release();
  },
  async 'set uuid recovery from a second Lock object'({ lock }) {
    const [a, b] = [await lock('s7'), await lock('s7')];
    await a.acquire(60);
    await b.setUuid(await a.uuid());
    await b.isAcquired();
    await b.acquire(60);
    await b.isAcquired();
    await b.release();
    await a.isAcquired();
  },
  async 'set uuid that does not exist'({ lock }) {
    const a = await lock('s8');
    await a.setUuid('0'.repeat(32));
  },
  async 'a waiter whose own key expires while it waits'({ lock, polls }) {
    const [a, b] = [await lock('s9'), await lock('s9')];
    await a.acquire(60);
    const waiting = b.acquire(1);
    await polls(1);
    await sleep(EXPIRED);
    await a.release();
    await waiting;
  },
  async 'owner whose key expires: waiter takes over on the expire event'({ lock }) {
    const [a, b] = [await lock('s10'), await lock('s10')];
    await a.acquire(1);
    await b.acquire(60);
    await a.isAcquired();
    await a.release();
    await b.release();
  },
  async 'context manager: no TTL'({ lock }) {
    const a = await lock('s11');
    await a.acquire(null);
    await a.isAcquired();
    await a.release();
  },
  async 'lock_ttl=0'({ lock }) {
    const a = await lock('s12');
    await a.acquire(0);
    await sleep(EXPIRED);
  },
  async 'lock_ttl=None'({ lock }) {
    const a = await lock('s13');
    await a.acquire(null);
    await a.acquire(null);
    await a.release();
  },
  async 'custom lock_prefix'({ lock }) {
    const a = await lock('s14', { lock_prefix: '/apps/locks' });
    await a.acquire(60);
    await a.release();
  },
  async names({ lock }) {
    for (const name of NAMES) {
      const a = await lock(name);
      await a.acquire(60);
      await a.release();
    }
  },
  async 'timeout=1 on a contended lock'({ lock, polls }) {
    const [a, b] = [await lock('s15'), await lock('s15')];
    await a.acquire(60);
    const waiting = b.acquire(60, { timeout: 1 });
    // After each timeout, python-etcd polls again, and abandons the poll before.
    await polls(3);
    await a.release();
    await waiting;
  },
};
