import { describe, expect, test, vi } from 'vitest';
import { PasswordRefused } from '../../../src/base/password-refused.ts';
import { BothTicket } from '../../../src/both/ticket.ts';
import { EtcdConnectionFailed, EtcdLockExpired } from '../../../src/errors.ts';
import type { OwnEntry, QueueStore, RenewalOptions, Standing, Ticket } from '../../../src/recipe/store.ts';

const OPTIONS: RenewalOptions = { timeout: 5 };

const entryOn = (store: 'v2' | 'v3', sentAt = 1000): OwnEntry => ({
  key: `/_locks/job/${store}`,
  value: 'mine',
  rank: 1n,
  clusterId: 'c',
  granted: 30,
  sentAt,
});

/** A ticket of one store that holds the lock there. Its renewals do what the test says. */
class HoldingTicket implements Partial<Ticket> {
  readonly path = '/_locks/job';
  readonly value = 'mine';
  last: OwnEntry;
  readonly renew = vi.fn<Ticket['renew']>(async () => this.last);

  constructor(store: 'v2' | 'v3') {
    this.last = entryOn(store);
  }

  async enter(): Promise<OwnEntry> {
    return this.last;
  }

  async standing(): Promise<Standing> {
    return { behind: undefined, fencingToken: 1n, first: undefined };
  }

  /** Makes the renewals succeed, with entries whose write was sent at this time. */
  renewsAt(sentAt: number): void {
    this.renew.mockImplementation(async () => {
      this.last = { ...this.last, sentAt };
      return this.last;
    });
  }
}

/** A ticket on both stores. It holds the lock on v2, and on v3 unless it has not entered the queue there. */
async function setUp({ isOnV3 = true } = {}) {
  const [v2, v3] = [new HoldingTicket('v2'), new HoldingTicket('v3')];
  const queueOf = (ticket: HoldingTicket): QueueStore => ({ ticket: () => ticket }) as unknown as QueueStore;
  const both = new BothTicket({ v2: queueOf(v2), v3: queueOf(v3) }, 'mine', new Map());
  await both.enter(30, { failed: 0, keepAlive: true });
  if (isOnV3) await both.standing({});
  return { v2, v3, both };
}

describe('the renewal of an entry in both stores', () => {
  test.each([
    ['v2', 3000, 4000],
    ['v3', 4000, 3000],
  ])('counts from when the earlier request was sent: the one to %s', async (_, sentOnV2, sentOnV3) => {
    const { v2, v3, both } = await setUp();
    v2.renewsAt(sentOnV2);
    v3.renewsAt(sentOnV3);
    expect(await both.renew(OPTIONS)).toMatchObject({ key: '/_locks/job/v2', granted: 30, sentAt: 3000 });
  });

  test.each(['v2', 'v3'] as const)(
    'reports the loss of the entry on %s at once, although the other store is silent',
    async (lost) => {
      const { v2, v3, both } = await setUp();
      const loss = new EtcdLockExpired('its key is gone');
      const [losing, silent] = lost === 'v2' ? [v2, v3] : [v3, v2];
      losing.renew.mockRejectedValue(loss);
      silent.renew.mockImplementation(
        ({ signal }) =>
          new Promise((_, reject) => {
            const { signal: ending } = signal as { signal: AbortSignal };
            ending.addEventListener('abort', () => reject(ending.reason));
          }),
      );
      await expect(both.renew(OPTIONS)).rejects.toBe(loss);
    },
  );

  test.each([
    ['v2', new EtcdConnectionFailed('no answer')],
    ['v3', new EtcdConnectionFailed('no answer')],
    ['v2', new PasswordRefused('the function for the password failed: Error: the vault is down')],
  ] as const)(
    'fails if the renewal on %s fails with an error that may pass, and still renews the other entry: %s',
    async (failing, failure) => {
      const { v2, v3, both } = await setUp();
      const [fails, works] = failing === 'v2' ? [v2, v3] : [v3, v2];
      fails.renew.mockRejectedValue(failure);
      works.renew.mockImplementation(async ({ signal }) => {
        await Promise.resolve();
        if (signal?.aborted) throw signal.reason;
        works.last = { ...works.last, sentAt: 3000 };
        return works.last;
      });
      await expect(both.renew(OPTIONS)).rejects.toBe(failure);
      expect(works.last.sentAt).toBe(3000);
    },
  );

  test('renews on v2 alone while the entry waits there', async () => {
    const { v2, v3, both } = await setUp({ isOnV3: false });
    v2.renewsAt(3000);
    expect(await both.renew(OPTIONS)).toMatchObject({ sentAt: 3000 });
    expect(v3.renew).not.toHaveBeenCalled();
  });
});
