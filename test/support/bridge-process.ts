import { onTestFinished } from 'vitest';
import { freePorts } from './ports.ts';
import { startScript } from './script.ts';
import { until } from './until.ts';

/** A bridge in its own process. */
export interface BridgeProcess {
  readonly url: string;
  kill(): void;
  /** Stops the process with SIGSTOP until `goOn()`. */
  stop(): void;
  goOn(): void;
  /** Starts another process after `kill()`, on the same port. Resolves once it listens. */
  restart(): Promise<void>;
  /** Ends the process as SIGTERM does. Resolves once it has exited. */
  end(): Promise<void>;
}

const SOURCE = `
  import { Bridge } from 'etcd-v2-lock/server';
  const { API: api, ETCD, PORT, PORTS } = process.env;
  const advertise = PORTS.split(',').map((port) => 'http://127.0.0.1:' + port);
  const bridge = await Bridge.start({ endpoints: ETCD.split(','), randomizeEndpoints: false, port: Number(PORT), advertise, api });
  process.once('SIGTERM', () => void bridge.stop().then(() => process.exit()));
`;

/**
 * Starts bridges that name each other to their clients. Resolves once they listen.
 * @param endpoints the members of etcd for each bridge, in order of preference
 */
export async function startBridges(
  endpoints: readonly (readonly string[])[],
  api: 'v3' | 'both' = 'v3',
): Promise<BridgeProcess[]> {
  const ports = await freePorts(endpoints.length);
  const start = (members: readonly string[], index: number) =>
    startBridge(ports[index] ?? 0, { API: api, ETCD: members.join(','), PORTS: ports.join(',') });
  return Promise.all(endpoints.map(start));
}

async function startBridge(port: number, settings: Record<string, string>): Promise<BridgeProcess> {
  const env = { ...settings, PORT: String(port) };
  const url = `http://127.0.0.1:${port}`;
  let running = startScript(SOURCE, env);
  const signal = (name: NodeJS.Signals) => void running.process.kill(name);
  const listening = () =>
    until(
      () => fetch(`${url}/version`).catch(() => undefined),
      (answer) => answer?.status === 200,
    );
  await listening();
  return {
    url,
    kill: () => signal('SIGKILL'),
    stop: () => signal('SIGSTOP'),
    goOn: () => signal('SIGCONT'),
    async restart() {
      await running.result;
      running = startScript(SOURCE, env);
      await listening();
    },
    async end() {
      signal('SIGCONT');
      signal('SIGTERM');
      await running.result;
    },
  };
}

/** Starts bridges that end with the test. */
export async function useBridges(endpoints: readonly (readonly string[])[]): Promise<BridgeProcess[]> {
  const bridges = await startBridges(endpoints);
  onTestFinished(async () => {
    await Promise.all(bridges.map((bridge) => bridge.end()));
  });
  return bridges;
}
