import { setTimeout as sleep } from 'node:timers/promises';
import type { BridgeProcess } from '../support/bridge-process.ts';
import type { Contender } from './contender.ts';
import type { FaultCluster, FaultMember } from './fault-cluster.ts';
import type { FaultKind } from './history.ts';
import type { Recorder } from './recorder.ts';
import type { Planned } from './schedule.ts';
import { STORE } from './stores/tested.ts';
import type { Request } from './tcp-proxy.ts';

/** The targets of faults. */
export interface World {
  readonly cluster: FaultCluster;
  readonly recorder: Recorder;
  /** The bridges between foreign contenders and the cluster, if any. */
  readonly bridges: readonly BridgeProcess[];
  /** Contenders that may be stopped or killed. */
  victims(): readonly Contender[];
  /** The victim that holds the lock, if any does. */
  holder(): Contender | undefined;
  /** Kills the contender and starts another one instead. */
  replace(kind: FaultKind, contender: Contender): void;
}

/** Milliseconds in each direction. */
const SLOW = 100;

/** Inflicts the planned fault, and ends it after the planned time. */
export async function inflict(planned: Planned, world: World): Promise<void> {
  const { kind, target, lasting } = planned;
  const { cluster, recorder } = world;
  const name = (member: FaultMember): string => `m${cluster.members.indexOf(member) + 1}`;

  const during = async (members: readonly FaultMember[], begin: () => unknown, end: () => unknown): Promise<void> => {
    const over = recorder.begin(kind, members.map(name));
    await begin();
    await sleep(lasting);
    await end();
    over();
  };
  const oneMember = () => pick(cluster.members, target);
  const killed = (member: FaultMember) =>
    during(
      [member],
      () => member.etcd.kill(),
      () => member.etcd.restart(),
    );
  const paused = (members: readonly FaultMember[]) =>
    during(
      members,
      () => Promise.all(members.map(({ etcd }) => etcd.pause())),
      () => members.forEach(({ etcd }) => void etcd.resume()),
    );
  const isolated = (member: FaultMember) =>
    during(
      [member],
      () => member.isolate(),
      () => member.rejoin(),
    );
  const network = (begin: (member: FaultMember) => unknown) => {
    const member = oneMember();
    return during(
      [member],
      () => begin(member),
      () => member.proxy.heal(),
    );
  };

  switch (kind) {
    case 'member killed':
      return killed(pick(await cluster.followers(), target));
    case 'leader killed':
      return killed(await cluster.leader());
    case 'member paused':
      return paused([pick(await cluster.followers(), target)]);
    case 'leader paused':
      return paused([await cluster.leader()]);
    case 'quorum paused':
      return paused(cluster.members.filter((member) => member !== oneMember()));
    case 'member isolated':
      return isolated(pick(await cluster.followers(), target));
    case 'leader isolated':
      return isolated(await cluster.leader());
    case 'connections cut':
      return network(({ proxy }) => proxy.cut());
    case 'connections refused':
      return network(({ proxy }) => {
        proxy.refuse();
        proxy.cut();
      });
    case 'requests lost':
      return network(({ proxy }) => proxy.blackHole('requests'));
    case 'answers lost':
      return network(({ proxy }) => proxy.blackHole('answers'));
    case 'both ways lost':
      return network(({ proxy }) => proxy.blackHole('both'));
    case 'network slow':
      return network(({ proxy }) => proxy.delay(SLOW));
    case 'answer swallowed':
      return swallowed(planned, world);
    case 'contender stopped':
      return stopped(planned, pick(world.victims(), target), recorder);
    case 'contender killed':
      return world.replace(kind, pick(world.victims(), target));
    case 'holder stopped':
      return onHolder(world, (victim) => stopped(planned, victim, recorder));
    case 'holder killed':
      return onHolder(world, (victim) => world.replace(kind, victim));
    case 'bridge killed':
      return bridgeLost(planned, world, {
        begin: (bridge) => bridge.kill(),
        end: (bridge) => bridge.restart(),
      });
    case 'bridge stopped':
      return bridgeLost(planned, world, {
        begin: (bridge) => bridge.stop(),
        end: (bridge) => bridge.goOn(),
      });
  }
}

/** Loses the answer to the next write with the chosen purpose, through whichever member. */
async function swallowed({ kind, target, lasting }: Planned, { cluster, recorder }: World): Promise<void> {
  const purpose = pick(['append', 'renewal', 'removal'] as const, target);
  let wanted = true;
  const match = (request: Request): boolean => {
    const found = wanted && STORE.purposeOf(request) === purpose;
    if (found) wanted = false;
    return found;
  };
  const over = recorder.begin(kind, [purpose]);
  await Promise.race([...cluster.members.map(({ proxy }) => proxy.swallow(match)), sleep(lasting)]);
  wanted = false;
  over();
}

/** One bridge fails for the planned time. */
async function bridgeLost(
  { kind, target, lasting }: Planned,
  { bridges, recorder }: World,
  {
    begin,
    end,
  }: { readonly begin: (bridge: BridgeProcess) => void; readonly end: (bridge: BridgeProcess) => Promise<void> | void },
): Promise<void> {
  const bridge = pick(bridges, target);
  const over = recorder.begin(kind, [`b${bridges.indexOf(bridge) + 1}`]);
  begin(bridge);
  await sleep(lasting);
  await end(bridge);
  over();
}

async function stopped({ kind, lasting }: Planned, contender: Contender, recorder: Recorder): Promise<void> {
  const over = recorder.begin(kind, [contender.who]);
  contender.stop();
  await sleep(lasting);
  contender.goOn();
  over();
}

/** Milliseconds to wait for a holder. An entry that a foreign client has left may block the lock for longer. */
const SOME_HOLD = 30_000;

/** Inflicts a fault on the holder. Does nothing if nobody holds the lock in time: `waits.ts` says whether somebody had to. */
async function onHolder(world: World, fault: (holder: Contender) => void | Promise<void>): Promise<void> {
  const end = performance.now() + SOME_HOLD;
  while (performance.now() < end) {
    const holder = world.holder();
    if (holder) return fault(holder);
    await sleep(POLL_EVERY);
  }
}

/** Milliseconds. */
const POLL_EVERY = 10;

function pick<T>(all: readonly T[], target: number): T {
  const one = all[target % all.length];
  if (one === undefined) throw new Error('the fault has no possible target');
  return one;
}
