import type { Checker } from './checker.ts';
import type { Claim } from './claim.ts';
import type * as bridge from './client/bridge.ts';
import type * as client from './client/entry.ts';
import { USER } from './cluster/users.ts';
import type { Disturbances } from './disturbances.ts';
import { Entries } from './entries.ts';
import { runEtcdctl, runGo } from './models/go-program.ts';
import { runPython } from './models/python-program.ts';
import type { Network } from './network/network.ts';
import { putOn } from './network/network-of.ts';
import type { Api, ClientPlan, Plan } from './plan.ts';
import type { Report } from './report.ts';
import { Process } from './virtual/process.ts';
import type { Program } from './virtual/program.ts';
import type { Scheduler } from './virtual/scheduler.ts';

/** The programs of clients of others. */
const MODELS = { python: runPython, go: runGo, etcdctl: runEtcdctl };

const BRIDGE_PORT = 4001;

/** Most milliseconds of a hold and of a pause when the storm is over. */
const LONGEST_IN_CALM = 500;

/** See `alive` in src/recipe/entries/leftovers.ts. */
const ALIVE = Symbol.for('etcd-v2-lock.alive');

export interface PopulationOptions {
  readonly plan: Plan;
  readonly programs: { readonly client: Program<typeof client>; readonly bridge: Program<typeof bridge> };
  readonly scheduler: Scheduler;
  readonly network: Network;
  readonly checker: Checker;
  readonly disturbances: Disturbances;
  /** URLs of the members. */
  readonly urls: readonly string[];
  readonly trace: (line: string) => void;
}

/** The processes of a world that are no members: clients, which may start again as clients of another API, and bridges. */
export class Population {
  readonly clients: Process[];
  readonly bridges: Process[];
  /** Number of clients that have ended. */
  ended = 0;
  readonly #options: PopulationOptions;
  /** The API with which each client starts. While none is moving, all run with theirs. */
  readonly #apis: Api[];
  /** Clients that are asked to end, so that they start again with another API. */
  readonly #moving = new Set<number>();
  readonly #clientPrograms = new Map<typeof client, Process>();
  readonly #bridgePrograms: (typeof bridge)[] = [];
  readonly #entries: Entries;
  /** What the processes of each client have written to disk. It survives them. */
  readonly #disks: readonly client.ProgramOptions['disk'][];
  #isCalm = false;
  #generation = 0;

  constructor(options: PopulationOptions) {
    this.#options = options;
    const { plan, scheduler, checker, disturbances } = options;
    const { clients, bridges, moves } = plan;
    this.#entries = new Entries({
      plan,
      scheduler,
      disturbances,
      stored: () => checker.stored(),
      mayLeave: ({ name }) => {
        const { appendedTwice } = this.#options.network;
        return appendedTwice.has(name) || this.bridges.some((bridge) => appendedTwice.has(bridge.name));
      },
      violate: (what) => checker.violate(what),
    });
    this.#apis = clients.map(({ api }) => api);
    this.#disks = clients.map(() => new Map());
    this.bridges = bridges.map((_, i) => this.startBridge(i));
    this.clients = clients.map((_, i) => this.startClient(i));
    for (const { at, client: i, to } of moves) scheduler.after(at, () => this.#move(i, to));
  }

  /** Ends the storm: each client makes its last calls. */
  calm(): void {
    this.#isCalm = true;
  }

  /** Names of all processes. */
  get names(): readonly string[] {
    return [...this.bridges, ...this.clients].map(({ name }) => name);
  }

  get hasEnded(): boolean {
    return this.ended === this.clients.length;
  }

  /** Bridges end by being killed: they have no state. */
  endBridges(): void {
    for (const process of this.bridges) process.kill();
  }

  /** Number of values that clients which have ended by themselves still take for those of requests under way. */
  get kept(): number {
    const { client } = this.#options.programs;
    const ended = [...this.#clientPrograms].filter(([, process]) => !process.isKilled);
    return ended.reduce((sum, [instance]) => sum + (client.keptBy(instance).get(ALIVE)?.size ?? 0), 0);
  }

  /** Call this at the end of a world in which nothing was left behind. */
  giveBack(): void {
    const { programs } = this.#options;
    for (const instance of this.#clientPrograms.keys()) programs.client.giveBack(instance);
    for (const instance of this.#bridgePrograms) programs.bridge.giveBack(instance);
  }

  startBridge(i: number): Process {
    const { plan, programs, network, checker, urls, trace } = this.#options;
    const { rate, api } = plan.bridges[i] ?? { rate: 1, api: 'v3' };
    const process = this.#newProcess(`bridge${i + 1}`, rate);
    process.after(0, () => {
      const instance = programs.bridge.take();
      putOn(network, process);
      instance.useNetwork(network);
      this.#bridgePrograms.push(instance);
      const advertise = plan.bridges.map((_, at) => `http://${hostOf(at)}:${BRIDGE_PORT}`);
      const log: bridge.BridgeProgramOptions['log'] = ({ event, client, method, path, status, error }) =>
        trace(
          [`${process.name}:`, event, client, method, path, status, error]
            .filter((each) => each !== undefined)
            .join(' '),
        );
      const options = { api, endpoints: urls, host: hostOf(i), port: BRIDGE_PORT, advertise, log };
      const onError = (error: unknown) => checker.violate(`${process.name} does not start: ${error}`);
      instance.runBridge(options).catch(onError);
    });
    return process;
  }

  startClient(i: number): Process {
    const { plan, network, checker, trace } = this.#options;
    const each = plan.clients[i];
    const api = this.#apis[i];
    const disk = this.#disks[i];
    if (!each || !api || !disk) throw new Error(`no client ${i}`);
    const process = this.#newProcess(each.name, each.rate);
    const own = checker.reportOf(process);
    const report = reportOf(each, plan.hasOtherCluster ? own : this.#entries.watching(process, i, own));
    const options = {
      client: this.#inTheCalm(each),
      api,
      endpoints: this.#endpointsOf(each),
      locks: plan.locks,
      user: plan.hasUsers ? USER : {},
      isCalm: () => this.#isCalm && checker.holds >= plan.holds,
      isMoving: () => this.#moving.has(i),
      generation: this.#generation,
      disk,
    };
    // In a step of its own: what a program does after its first `await` must not run as another process.
    process.after(0, () => {
      const running =
        each.kind === 'node'
          ? this.#runNode(process, options, report)
          : MODELS[each.kind]({ ...options, process, network, report });
      running.then(
        () => {
          trace(`${each.name}: has ended`);
          if (this.#moving.delete(i)) this.clients[i] = this.startClient(i);
          else this.ended += 1;
        },
        (error: unknown) =>
          checker.violate(`${each.name}: the program failed: ${error instanceof Error ? error.stack : error}`),
      );
    });
    return process;
  }

  /** Returns the plan of a client whose holds and pauses become short when the storm is over, so that the world ends soon. */
  #inTheCalm(client: ClientPlan): ClientPlan {
    const isCalm = () => this.#isCalm;
    const short = (ms: number) => (isCalm() ? Math.min(ms, LONGEST_IN_CALM) : ms);
    return {
      ...client,
      get hold() {
        return short(client.hold);
      },
      get pause() {
        return short(client.pause);
      },
      get longHolds() {
        return isCalm() ? 0 : client.longHolds;
      },
    };
  }

  #newProcess(name: string, rate: number): Process {
    const { plan, scheduler } = this.#options;
    this.#generation += 1;
    return new Process(name, scheduler, `${plan.seed} ${this.#generation}`, { rate });
  }

  async #runNode(process: Process, options: client.ProgramOptions, report: Report): Promise<void> {
    const { programs, network } = this.#options;
    const instance = programs.client.take();
    putOn(network, process);
    instance.useNetwork(network);
    this.#clientPrograms.set(instance, process);
    await instance.runProgram(options, report);
  }

  #endpointsOf({ members, isBridged }: ClientPlan): readonly string[] {
    const { plan, urls } = this.#options;
    if (isBridged) return plan.bridges.map((_, i) => `http://${hostOf(i)}:${BRIDGE_PORT}`);
    return urls.filter((_, at) => members?.includes(at) ?? true);
  }

  /** Asks a client to end and to start again with another API; only if the step before that is complete. */
  #move(i: number, to: Api): void {
    const { trace, plan } = this.#options;
    const isReady = to !== 'v3' || this.#apis.every((api, at) => api !== 'v2' || plan.clients[at]?.isBridged);
    if (!isReady || this.#isCalm || this.#moving.size > 0) return;
    trace(`${plan.clients[i]?.name}: is to move to ${to}`);
    this.#moving.add(i);
    this.#apis[i] = to;
  }
}

const hostOf = (bridge: number): string => `10.0.1.${bridge + 1}`;

/** The tokens of a client of a bridge are of another kind, and in etcd its keys have other names. */
const reportOf = ({ isBridged }: ClientPlan, report: Report): Report =>
  isBridged
    ? {
        ...report,
        // In etcd, its entries are those of the bridge.
        call: (what, timeout, { label: _, ...options } = {}) => report.call(what, timeout, options),
        hold: (claim) => report.hold(bridged(claim)),
        takesInOrder: (claims) => report.takesInOrder(claims.map(bridged)),
        drops: () => {},
        // A bridge may carry out later what it was asked for.
        closes: () => () => {},
      }
    : report;

const bridged = ({ key: _, tokens: { v2 }, ...claim }: Claim): Claim => ({
  ...claim,
  tokens: v2 === undefined ? {} : { bridge: v2 },
});
