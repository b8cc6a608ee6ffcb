import type { GatewayCall, GatewayClient } from '../gateway/gateway.ts';

/** Reads the alarms of the cluster, such as NOSPACE, from the status of a member (etcd 3.4 and later). */
export const readAlarms = (gateway: GatewayClient, options: GatewayCall): Promise<readonly string[]> =>
  gateway.call('hedged', { lane: 'read', ...options }, async (member) => {
    const { fields } = await member.ask('/maintenance/status', {});
    return fields.texts('errors').filter((error) => error.includes('alarm:'));
  });
