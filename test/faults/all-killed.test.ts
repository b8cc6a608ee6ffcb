import { noQuorum } from './no-quorum.ts';

noQuorum('all members are killed and restarted after 15 s', {
  members: 3,
  begin: ({ etcd }) => etcd.kill(),
  end: ({ etcd }) => etcd.restart({ wait: false }),
});
