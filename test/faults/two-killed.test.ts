import { noQuorum } from './no-quorum.ts';

noQuorum('two members, the leader among them, are killed for 15 s', {
  members: 2,
  begin: ({ etcd }) => etcd.kill(),
  end: ({ etcd }) => etcd.restart({ wait: false }),
});
