import { expect } from 'vitest';
import type { Bridge } from '../../../src/server/bridge/bridge.ts';

/** The status and the body of `/health`. */
export const health = async (bridge: Bridge): Promise<unknown[]> => {
  const answer = await fetch(`${bridge.url}/health`);
  return [answer.status, await answer.text()];
};

/** The metrics of a bridge, by name and labels. */
export async function metricsOf(bridge: Bridge): Promise<Record<string, number>> {
  const answer = await fetch(`${bridge.url}/metrics`);
  expect(answer.headers.get('content-type')).toBe('text/plain; version=0.0.4; charset=utf-8');
  const lines = (await answer.text()).split('\n').filter((line) => line !== '' && !line.startsWith('#'));
  for (const line of lines) expect(line).toMatch(/^etcd_v2_lock_bridge_\w+(\{(\w+="[^"]*",?)+\})? [\d.e+-]+$/);
  return Object.fromEntries(
    lines.map((line) => [line.split(' ')[0]?.replace('etcd_v2_lock_bridge_', ''), Number(line.split(' ')[1])]),
  );
}
