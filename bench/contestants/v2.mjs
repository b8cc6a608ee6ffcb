// Who takes part in the comparison on etcd's v2 API.
import { apart } from './apart.mjs';
import { etcdctl } from './etcdctl.mjs';
import { bareHandOver } from './floors.mjs';
import { ours } from './ours.mjs';
import { pythonEtcd } from './python.mjs';
import { queueOfOurs, queueOfPython } from './queues.mjs';

const cycles = async (url) => [
  await apart('lock', url),
  await apart('manager', url),
  await apart('writes', url),
  await apart('requests', url),
  pythonEtcd(url),
  await apart('etcd3', url),
];

export const v2 = {
  id: 'v2',
  cycles,
  countedCycles: cycles,
  handOvers: (url) => [ours('lock', url), ours('manager', url), bareHandOver(url), pythonEtcd(url), etcdctl(url)],
  countedHandOvers: (url) => [ours('lock', url), ours('manager', url), pythonEtcd(url)],
  queues: () => [(url) => queueOfOurs('lock', url), queueOfPython],
};
