// Who takes part in the comparison on etcd's v3 API.
import { apart } from './apart.mjs';
import { etcdctl, etcdctlCycles } from './etcdctl.mjs';
import { bareHandOverByGateway } from './floors-v3.mjs';
import { goMutex, goMutexes, hasGo } from './go.mjs';
import { ours } from './ours.mjs';
import { queueOfGo, queueOfOurs } from './queues.mjs';

/** Starts contestants, one after the other. */
async function allApart(ids, url) {
  const all = [];
  for (const id of ids) all.push(await apart(id, url));
  return all;
}

/** @param go whether Go's client takes part, as a program that is built first */
export function v3({ go = hasGo() } = {}) {
  const withGo = (others, makeGo) => (go ? [...others, makeGo()] : others);
  const countedCycles = async (url) =>
    withGo(await allApart(['manager-v3', 'lock-v3', 'gateway', 'grpc', 'etcd3'], url), () => goMutex(url));
  const ourHandOvers = (url) => [ours('manager', url, 'v3'), ours('lock', url, 'v3')];
  const cyclesAtOnce = (url) => allApart(['manager-v3', 'lock-v3', 'gateway-pool', 'grpc', 'etcd3'], url);
  const agedCycles = async (url) => {
    const others = await allApart(['manager-v3', 'managers-v3', 'etcd3'], url);
    return go ? [...others, goMutex(url), goMutexes(url)] : others;
  };
  return {
    id: 'v3',
    cycles: async (url) => [...(await countedCycles(url)), etcdctlCycles(url)],
    /** Those whose requests are counted: not a new process for each cycle. */
    countedCycles,
    cyclesAtOnce,
    agedCycles,
    onceEach: async (url) => withGo(await allApart(['manager-v3', 'lock-v3', 'etcd3'], url), () => goMutex(url)),
    handOvers: (url) => withGo([...ourHandOvers(url), bareHandOverByGateway(url), etcdctl(url)], () => goMutex(url)),
    countedHandOvers: ourHandOvers,
    queues: () =>
      withGo([(url) => queueOfOurs('manager', url, 'v3'), (url) => queueOfOurs('lock', url, 'v3')], () => queueOfGo),
  };
}
