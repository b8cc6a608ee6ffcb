// Who takes part in the comparison on etcd's v3 API.
import { apart } from './apart.mjs';
import { etcdctl, etcdctlCycles } from './etcdctl.mjs';
import { bareHandOverByGateway } from './floors-v3.mjs';
import { goMutex, hasGo } from './go.mjs';
import { ours } from './ours.mjs';
import { queueOfGo, queueOfOurs } from './queues.mjs';

const withGo = (others, makeGo) => (hasGo() ? [...others, makeGo()] : others);

export const v3 = {
  id: 'v3',

  async cycles(url) {
    const counted = await v3.countedCycles(url);
    return [...counted, etcdctlCycles(url)];
  },

  /** Those whose requests are counted: not a new process for each cycle. */
  async countedCycles(url) {
    const others = [];
    for (const id of ['manager-v3', 'lock-v3', 'gateway', 'grpc', 'etcd3']) others.push(await apart(id, url));
    return withGo(others, () => goMutex(url));
  },

  handOvers: (url) =>
    withGo([ours('manager', url, 'v3'), ours('lock', url, 'v3'), bareHandOverByGateway(url), etcdctl(url)], () =>
      goMutex(url),
    ),

  countedHandOvers: (url) => [ours('manager', url, 'v3'), ours('lock', url, 'v3')],

  queues: () =>
    withGo([(url) => queueOfOurs('manager', url, 'v3'), (url) => queueOfOurs('lock', url, 'v3')], () => queueOfGo),
};
