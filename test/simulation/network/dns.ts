import type { LookupAddress, SrvRecord } from 'node:dns';
import { CLUSTER_NAME } from '../plan.ts';
import { currentProcess } from '../virtual/process.ts';
import { networkOf } from './network-of.ts';

/** Milliseconds that an answer takes; a slow one takes longer than clients wait. */
const FAST: readonly [number, number] = [0.2, 20];
const SLOW: readonly [number, number] = [500, 3000];

const notFound = (name: string): Error => Object.assign(new Error(`queryA ENOTFOUND ${name}`), { code: 'ENOTFOUND' });

/** Resolves to the answer some time later, for the running process. Fails, or takes long, as often as the weather has it. */
function answer<T>(make: () => T): Promise<T> {
  const process = currentProcess();
  const network = networkOf(process);
  const { random } = process;
  const { lost, delayed } = network.weather;
  return new Promise((resolve, reject) => {
    process.after(random.between(...(random.chance(delayed) ? SLOW : FAST)), () => {
      if (random.chance(lost)) return reject(Object.assign(new Error('queryA ESERVFAIL'), { code: 'ESERVFAIL' }));
      try {
        resolve(make());
      } catch (error) {
        reject(error);
      }
    });
  });
}

/** Node's `dns/promises` for a simulated process: it knows one name, which stands for all that listens at etcd's port. */
export const simulatedDns = {
  lookup: (name: string): Promise<LookupAddress[]> => {
    const network = networkOf(currentProcess());
    return answer(() => {
      if (name !== CLUSTER_NAME && !name.endsWith(`.${CLUSTER_NAME}`)) throw notFound(name);
      const hosts = network.members.map(({ host }) => host);
      return hosts.map((address) => ({ address, family: 4 }));
    });
  },
  resolveSrv: (name: string): Promise<SrvRecord[]> => {
    const network = networkOf(currentProcess());
    return answer(() => {
      if (name !== `_etcd-client._tcp.${CLUSTER_NAME}`) throw notFound(name);
      return network.members.map(({ host, port }, i) => ({ name: host, port, priority: i % 2, weight: i }));
    });
  },
};
