import { noQuorum } from './no-quorum.ts';

noQuorum('two members, including the leader, are killed and restarted after 15 s', {
  members: 2,
  begin: ({ etcd }) => etcd.kill(),
  end: ({ etcd }) => etcd.restart({ wait: false }),
});
