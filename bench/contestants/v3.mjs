// Who takes part in the comparison on etcd's v3 API.
import { apart } from './apart.mjs';
import { etcdctl, etcdctlCycles } from './etcdctl.mjs';
import { bareHandOverByGateway } from './floors-v3.mjs';
import { goMutex, goMutexes, hasGo } from './go.mjs';
import { ours } from './ours.mjs';
import { queueOfGo, queueOfOurs } from './queues.mjs';

/** @param go whether Go's client takes part, as a program that is built first */
export function v3({ go = hasGo() } = {}) {
  const withGo = (others, makeGo) => (go ? [...others, makeGo()] : others);
  const countedCycles = async (url) => {
    const others = [];
    for (const id of ['manager-v3', 'lock-v3', 'gateway', 'grpc', 'etcd3']) others.push(await apart(id, url));
    return withGo(others, () => goMutex(url));
  };
  const ourHandOvers = (url) => [ours('manager', url, 'v3'), ours('lock', url, 'v3')];
  const cyclesAtOnce = async (url) => {
    const all = [];
    for (const id of ['manager-v3', 'lock-v3', 'gateway-pool', 'grpc', 'etcd3']) all.push(await apart(id, url));
    return all;
  };
  const agedCycles = async (url) => {
    const others = [];
    for (const id of ['manager-v3', 'managers-v3', 'etcd3']) others.push(await apart(id, url));
    return go ? [...others, goMutex(url), goMutexes(url)] : others;
  };
  return {
    id: 'v3',
    cycles: async (url) => [...(await countedCycles(url)), etcdctlCycles(url)],
    /** Those whose requests are counted: not a new process for each cycle. */
    countedCycles,
    cyclesAtOnce,
    agedCycles,
    onceEach: async (url) => {
      const others = [];
      for (const id of ['manager-v3', 'lock-v3', 'etcd3']) others.push(await apart(id, url));
      return withGo(others, () => goMutex(url));
    },
    handOvers: (url) => withGo([...ourHandOvers(url), bareHandOverByGateway(url), etcdctl(url)], () => goMutex(url)),
    countedHandOvers: ourHandOvers,
    queues: () =>
      withGo([(url) => queueOfOurs('manager', url, 'v3'), (url) => queueOfOurs('lock', url, 'v3')], () => queueOfGo),
  };
}
