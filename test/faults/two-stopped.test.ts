import { noQuorum } from './no-quorum.ts';

noQuorum('two members, including the leader, are paused for 15 s', {
  members: 2,
  begin: async ({ etcd }) => etcd.pause(),
  end: async ({ etcd }) => etcd.resume(),
});
