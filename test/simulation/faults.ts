import type { Cluster } from './cluster/cluster.ts';
import type { Member } from './cluster/member.ts';
import { CALM, type Network } from './network/network.ts';
import type { InHand, TimedFault } from './plan.ts';
import type { Population } from './population.ts';
import type { Process } from './virtual/process.ts';
import type { Scheduler } from './virtual/scheduler.ts';

/** Milliseconds between a removal and the end of the client that has sent it. */
const KILLED_AFTER = 5;

/** Milliseconds until that client starts again. */
const RESTARTED_AFTER = 300;

export interface FaultsOptions {
  readonly cluster: Cluster;
  readonly network: Network;
  readonly population: Population;
  readonly scheduler: Scheduler;
  readonly trace: (line: string) => void;
  readonly onReplaced: () => void;
}

/** Inflicts the faults of a plan. */
export class Faults {
  readonly #options: FaultsOptions;
  readonly #endings = new Set<() => void>();

  constructor(options: FaultsOptions) {
    this.#options = options;
  }

  plan(faults: readonly TimedFault[]): void {
    const { scheduler, trace } = this.#options;
    for (const fault of faults)
      scheduler.after(fault.at, () => {
        const end = this.#begin(fault);
        if (!end) return;
        trace(`FAULT ${JSON.stringify(fault)}`);
        const ending = (): void => {
          if (!this.#endings.delete(ending)) return;
          trace(`end of ${fault.kind} that began at ${fault.at}`);
          end();
        };
        this.#endings.add(ending);
        scheduler.after(fault.until - fault.at, ending);
      });
  }

  /** Ends all faults. */
  end(): void {
    for (const ending of this.#endings) ending();
    this.#options.network.mendAll();
  }

  /** Returns what ends the fault; undefined if it is not possible now. */
  #begin(fault: TimedFault): (() => void) | undefined {
    const { cluster, network, population } = this.#options;
    const { clients, bridges } = population;
    switch (fault.kind) {
      case 'weather': {
        network.weather = { ...CALM, ...fault };
        return () => {
          network.weather = CALM;
        };
      }
      case 'flood':
        return this.#repeat(fault.every, () => cluster.flood());
      case 'compact':
        return this.#repeat(fault.every, () => cluster.compact(fault.keep));
      case 'forget-tokens': {
        const member = cluster.members[fault.member];
        if (!member) return undefined;
        cluster.forgetTokens(member);
        return () => {};
      }
      case 'replace-cluster':
        cluster.replace();
        this.#options.onReplaced();
        return () => {};
      case 'kill-all': {
        const ends = cluster.members.map((member) => this.#harm('kill-member', member));
        kill(clients, fault.restarted, (i) => population.startClient(i))?.();
        return () => {
          for (const end of ends) end?.();
        };
      }
      case 'stall-leader': {
        const { leader } = cluster.consensus;
        if (!leader || leader.process.isKilled || leader.process.isStopped) return undefined;
        leader.process.stop();
        return () => cluster.continue(leader, { revokes: true });
      }
      case 'stop-member': {
        const member = this.#member(fault.member);
        return member && this.#beginAt(member.process, fault.inHand, () => this.#harm('stop-member', member));
      }
      case 'interrupt-removal': {
        const member = this.#member(fault.member);
        return member && this.#interruptRemoval(member);
      }
      case 'deafen-sender': {
        const member = cluster.members[fault.member];
        return member && this.#deafenSender(member, fault.inHand);
      }
      case 'kill-member':
      case 'cut-member':
      case 'isolate-member': {
        const member = this.#member(fault.member);
        return member && this.#harm(fault.kind, member);
      }
      case 'stop-client': {
        const client = clients[fault.client];
        return this.#beginAt(client, fault.inHand, () => stop(client, 'others'));
      }
      case 'block-client':
        return stop(clients[fault.client], 'timers');
      case 'stop-bridge':
        return stop(bridges[fault.bridge], 'others');
      case 'kill-client':
        return kill(clients, fault.client, (i) => population.startClient(i));
      case 'kill-bridge':
        return kill(bridges, fault.bridge, (i) => population.startBridge(i));
      case 'cut-client':
      case 'deafen-client': {
        const [client, member] = [clients[fault.client]?.name ?? '', cluster.members[fault.member]?.name ?? ''];
        return this.#cut(
          fault.kind === 'cut-client'
            ? [
                [client, member],
                [member, client],
              ]
            : [[member, client]],
        );
      }
    }
  }

  #member(which: number | 'leader'): Member | undefined {
    const { consensus, members } = this.#options.cluster;
    return which === 'leader' ? consensus.leader : members[which];
  }

  /** Begins something when the process has this in hand. Returns what ends it. */
  #beginAt(
    process: Process | undefined,
    inHand: InHand,
    begin: () => (() => void) | undefined,
  ): (() => void) | undefined {
    if (!process || inHand === 'anything') return begin();
    let end: (() => void) | undefined;
    const cancel = this.#options.network.onceSentTo(process, inHand, () => {
      this.#options.trace(`${process.name} is stopped, with ${inHand} in hand`);
      end = begin();
    });
    return () => {
      cancel();
      end?.();
    };
  }

  /** When a removal is on its way to the member, stops that and kills the client. Returns what ends it. */
  #interruptRemoval(member: Member): () => void {
    const { network, population, scheduler, trace } = this.#options;
    const { clients } = population;
    const endings: (() => void)[] = [];
    const cancel = network.onceSentTo(member.process, 'a removal', (from) => {
      const client = from ? clients.indexOf(from) : -1;
      const harm = client < 0 ? undefined : this.#harm('stop-member', member);
      if (!harm) return;
      trace(`${member.name} is stopped, with a removal of ${from?.name} in hand`);
      endings.push(harm);
      // When the removal has left it.
      scheduler.after(KILLED_AFTER, () => {
        const restart = kill(clients, client, (i) => population.startClient(i));
        if (!restart) return;
        endings.push(restart);
        scheduler.after(RESTARTED_AFTER, restart);
      });
    });
    return () => {
      cancel();
      for (const end of endings) end();
    };
  }

  /** When such a message is on its way to the member, keeps all answers from the process that has sent it. Returns what ends it. */
  #deafenSender(member: Member, inHand: Exclude<InHand, 'anything'>): () => void {
    const { cluster, network, trace } = this.#options;
    let end: (() => void) | undefined;
    const cancel = network.onceSentTo(member.process, inHand, (from) => {
      if (!from) return;
      trace(`${from.name} hears nothing, with ${inHand} on its way`);
      end = this.#cut(cluster.members.map(({ name }) => [name, from.name] as const));
    });
    return () => {
      cancel();
      end?.();
    };
  }

  #repeat(ms: number, step: () => void): () => void {
    let cancel = (): void => {};
    const next = (): void => {
      step();
      cancel = this.#options.scheduler.after(ms, next);
    };
    next();
    return () => cancel();
  }

  #harm(
    kind: 'stop-member' | 'kill-member' | 'cut-member' | 'isolate-member',
    member: Member,
  ): (() => void) | undefined {
    const { cluster, population } = this.#options;
    const { process } = member;
    if (process.isKilled || process.isStopped) return undefined;
    switch (kind) {
      case 'stop-member':
        process.stop();
        return () => {
          if (member.process === process) cluster.continue(member);
        };
      case 'kill-member':
        process.kill();
        return () => {
          if (member.process === process) cluster.restart(member);
        };
      default: {
        const peers = cluster.members.filter((other) => other !== member).map(({ name }) => name);
        const others = kind === 'isolate-member' ? [...peers, ...population.names] : peers;
        return this.#cut(
          others.flatMap(
            (other) =>
              [
                [other, member.name],
                [member.name, other],
              ] as const,
          ),
        );
      }
    }
  }

  #cut(links: readonly (readonly [string, string])[]): () => void {
    const { network } = this.#options;
    for (const [from, to] of links) network.cut(from, to);
    return () => {
      for (const [from, to] of links) network.mend(from, to);
    };
  }
}

function stop(process: Process | undefined, first: 'timers' | 'others'): (() => void) | undefined {
  if (!process || process.isKilled || process.isStopped) return undefined;
  process.stop();
  return () => process.continue(first);
}

function kill(processes: Process[], i: number, start: (i: number) => Process): (() => void) | undefined {
  const process = processes[i];
  if (!process || process.isKilled) return undefined;
  process.kill();
  return () => {
    if (processes[i] === process) processes[i] = start(i);
  };
}
