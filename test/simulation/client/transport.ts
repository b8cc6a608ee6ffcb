/** Takes the place of `src/http/transport.ts` in a simulated process. */
import type { LookupFunction } from 'node:net';
import type {
  connectorOf as realConnectorOf,
  openTransport as realOpenTransport,
  requestTunnel as realRequestTunnel,
} from '../../../src/http/transport.ts';
import type { Network } from '../network/network.ts';
import { SimulatedTransport } from '../network/transport.ts';

let network: Network;

export function useNetwork(used: Network): void {
  network = used;
}

export const openTransport: typeof realOpenTransport = (...options) => new SimulatedTransport(network, ...options);

export const connectorOf: typeof realConnectorOf =
  ({ timeout, lookup }: { timeout?: number | null; lookup?: LookupFunction | undefined }) =>
  ({ hostname, port }, callback) => {
    const find = (found: (host: string) => void): void => {
      if (lookup) lookup(hostname, { all: false }, (_, address) => found(`${address}:${port}`));
      else found(`${hostname}:${port}`);
    };
    return network.connect(find, timeout ?? 0, callback as unknown as Parameters<Network['connect']>[2]);
  };

/** Simulated clients use no proxy. */
export const requestTunnel: typeof realRequestTunnel = () => Promise.reject(new Error('no proxy'));
