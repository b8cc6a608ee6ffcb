import { setTimeout as sleep } from 'node:timers/promises';
import { expect, onTestFinished, test } from 'vitest';
import { type BridgeProcess, startBridges } from '../../support/bridge-process.ts';
import { gate } from '../../support/gate.ts';
import { entriesBelow } from '../../support/gateway.ts';
import { freshName, rejection, useProxy } from '../../support/locks.ts';
import type { ProxiedRequest } from '../../support/proxy.ts';
import { useLocks } from './use-bridge.ts';

const isGrant = ({ path }: ProxiedRequest): boolean => path.endsWith('/lease/grant');

test.each([
  ['with a TTL', { ttl: '60' }],
  ['without a TTL', {}],
])(
  'a bridge that is suspended while etcd answers makes no entry %s for a client that has hung up since',
  async (_, ttl) => {
    const [name, proxy, answer] = [freshName(), await useProxy(), gate()];
    const [bridge] = (await startBridges([[proxy.url]])) as [BridgeProcess];
    onTestFinished(() => bridge.end());
    const forget = proxy.intercept((request) => (isGrant(request) ? { answerAfter: answer.opened } : undefined));
    const [granting, granted] = [proxy.next(isGrant, 'arrived'), proxy.next(isGrant, 'answered')];
    const hangUp = new AbortController();
    const asking = rejection(
      fetch(`${bridge.url}/v2/keys/_locks/${name}`, {
        method: 'POST',
        body: new URLSearchParams({ value: 'of a client that hangs up', ...ttl }),
        signal: hangUp.signal,
      }),
    );
    await granting;
    bridge.stop();
    hangUp.abort();
    await asking;
    answer.open();
    await granted;
    // For the answer to reach the stopped process.
    await sleep(200);
    forget();
    bridge.goOn();
    // The append was handled before these requests.
    await useLocks('v2', bridge.url).request(freshName(), () => {});
    expect(await entriesBelow(`/_locks/${name}/`)).toEqual([]);
  },
);
