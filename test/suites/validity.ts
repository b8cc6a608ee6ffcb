import { describe, expect, test, vi } from 'vitest';
import type { EtcdClientOptions } from '../../src/client.ts';
import { LockManager } from '../../src/manager/manager.ts';
import { Lock } from '../../src/python/lock.ts';
import type { LockClient } from '../../src/recipe/client.ts';
import type { EnterOptions, LockStore, RenewalOptions, Ticket } from '../../src/recipe/store.ts';
import { useEtcdClient } from '../support/both.ts';
import { gate } from '../support/gate.ts';
import { freshName, useProxy } from '../support/locks.ts';
import type { ProxiedRequest } from '../support/proxy.ts';
import { useStillClock } from '../support/still-clock.ts';

type Api = NonNullable<EtcdClientOptions['api']>;

/** Seconds. */
const TTL = 30;
const MARGIN = 3;
/** Seconds until the answer to a renewal comes; less than the time after which another member is asked. */
const DELAY = 0.5;

const isRenewalOnV2 = ({ method }: ProxiedRequest): boolean => method === 'PUT';
const isRenewalOnV3 = ({ path }: ProxiedRequest): boolean => path.endsWith('/lease/keepalive');

const RENEWALS: Readonly<Record<Api, readonly (readonly [string, (request: ProxiedRequest) => boolean])[]>> = {
  v2: [['the write', isRenewalOnV2]],
  v3: [['the keep-alive', isRenewalOnV3]],
  both: [
    ['the write on v2', isRenewalOnV2],
    ['the keep-alive on v3', isRenewalOnV3],
  ],
};

const pass = (seconds: number): Promise<unknown> => vi.advanceTimersByTimeAsync(seconds * 1000);

/** A client whose renewals a test observes. */
interface Observed {
  readonly client: LockClient;
  /** Waits until a ticket has renewed its entry, also by entering the queue again. */
  untilRenewed(): Promise<unknown>;
  /** Makes all later renewals hang: none is sent. */
  hangRenewals(): void;
}

function observed({ clusterId, store: real }: LockClient): Observed {
  let isHanging = false;
  let onRenewed = () => {};
  const observe = (ticket: Ticket): Ticket => {
    const [renew, enter] = [ticket.renew.bind(ticket), ticket.enter.bind(ticket)];
    return Object.assign(ticket, {
      renew: (options: RenewalOptions) =>
        isHanging ? new Promise(() => {}) : renew(options).finally(() => onRenewed()),
      enter: (ttl: number | null, options: EnterOptions) => enter(ttl, options).finally(() => onRenewed()),
      // No request is under way while the test moves the clock.
      watch: () => () => {},
    });
  };
  const queue: LockStore['queue'] = (name) => {
    const made = real.queue(name);
    const ticket = made.ticket.bind(made);
    return Object.assign(made, { ticket: (...args: Parameters<typeof ticket>) => observe(ticket(...args)) });
  };
  const store = new Proxy(real, {
    get: (target, name) => (name === 'queue' ? queue : Reflect.get(target, name, target)),
  });
  return {
    client: { clusterId, store },
    async untilRenewed() {
      await new Promise<void>((resolve) => (onRenewed = resolve));
      // What waits for the renewal, too.
      await pass(0);
    },
    hangRenewals() {
      isHanging = true;
    },
  };
}

interface Hold {
  readonly signal: AbortSignal;
  release(): Promise<unknown>;
}

/** Tests until when a hold counts as valid after its renewal, on a clock that only the test moves. */
export function validityContract(api: Api): void {
  describe.each(RENEWALS[api])(`the validity of a hold (${api}), when etcd answers late to %s,`, (_, isRenewal) => {
    /** A client behind a proxy that delays the answer to the next renewal. */
    const setUp = async () => {
      const proxy = await useProxy();
      const { client, untilRenewed, hangRenewals } = observed(useEtcdClient({ api, endpoints: proxy.url }));
      // The client is closed on the real clock.
      useStillClock();
      /** Makes a renewal start, and its answer come late. */
      const renewLate = async (start: () => Promise<unknown>): Promise<void> => {
        const late = gate();
        const restore = proxy.intercept((request) => (isRenewal(request) ? { answerAfter: late.opened } : undefined));
        const answered = proxy.next(isRenewal, 'answered');
        const renewed = untilRenewed();
        const started = start();
        await answered;
        await pass(DELAY);
        late.open();
        await Promise.all([renewed, started]);
        restore();
        // No later renewal is answered.
        hangRenewals();
      };
      /** Expects that the hold is lost after so many seconds, and not before. Then ends it. */
      const expectLossAfter = async (seconds: number, hold: Hold): Promise<void> => {
        const { signal } = hold;
        await pass(seconds - 0.02);
        expect(signal.aborted).toBe(false);
        await pass(0.04);
        expect(signal.aborted).toBe(true);
        await hold.release();
      };
      return { client, renewLate, expectLossAfter };
    };

    test('counts from when a renewal of a request was sent', async () => {
      const { client, renewLate, expectLossAfter } = await setUp();
      const held = await new LockManager(client, { ttl: TTL, margin: MARGIN }).acquire(freshName());
      expect(held.expiresIn()).toBeCloseTo(TTL - MARGIN, 1);
      await renewLate(() => pass(TTL / 3));
      expect(held.expiresIn()).toBeCloseTo(TTL - MARGIN - DELAY, 1);
      await expectLossAfter(TTL - MARGIN - DELAY, held);
    });

    test('counts from when a renewal of a `Lock` with keepAlive was sent', async () => {
      const { client, renewLate, expectLossAfter } = await setUp();
      const lock = new Lock(client, freshName(), { margin: MARGIN });
      await lock.acquire({ lockTtl: TTL, keepAlive: true });
      const { signal } = lock;
      await renewLate(() => pass(TTL / 3));
      expect(lock.isTaken).toBe(true);
      await expectLossAfter(TTL - MARGIN - DELAY, { signal, release: () => lock.release() });
      expect(lock.isTaken).toBe(false);
    });

    test('counts from when a further acquire() of a `Lock` has sent its renewal', async () => {
      const { client, renewLate, expectLossAfter } = await setUp();
      const lock = new Lock(client, freshName(), { margin: MARGIN });
      await lock.acquire({ lockTtl: TTL, keepAlive: true });
      const { signal } = lock;
      await pass(5);
      await renewLate(() => lock.acquire({ lockTtl: TTL, keepAlive: true }));
      await expectLossAfter(TTL - MARGIN - DELAY, { signal, release: () => lock.release() });
    });
  });
}
