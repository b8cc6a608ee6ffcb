/** A simulated bridge. Bundled, with `client/transport.ts` in the place of the real transport. */
import { Bridge, type BridgeOptions } from '../../../src/server/bridge/bridge.ts';

export { useNetwork } from './transport.ts';

export interface BridgeProgramOptions {
  readonly api: 'v3' | 'both';
  readonly endpoints: readonly string[];
  readonly host: string;
  readonly port: number;
  readonly advertise: readonly string[];
  readonly log: BridgeOptions['log'];
}

/** Starts a bridge that works until its process is killed. */
export async function runBridge(options: BridgeProgramOptions): Promise<void> {
  await Bridge.start(options);
}
