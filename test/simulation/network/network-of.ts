import type { Network } from './network.ts';

const networks = new WeakMap<object, Network>();

/** Puts a process on a network. */
export function putOn(network: Network, process: object): void {
  networks.set(process, network);
}

export function networkOf(process: object): Network {
  const network = networks.get(process);
  if (!network) throw new Error('this process has no network');
  return network;
}
