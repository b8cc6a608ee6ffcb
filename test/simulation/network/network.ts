import { errors } from 'undici';
import { currentProcess, Process } from '../virtual/process.ts';
import type { Random } from '../virtual/random.ts';
import type { Scheduler } from '../virtual/scheduler.ts';
import { Connection } from './connection.ts';
import type { ConnectionEnd } from './end.ts';
import type { RequestMessage } from './message.ts';
import { type Awaited, REQUESTS } from './requests.ts';

/** What listens at an address. */
export interface Listener {
  readonly process: Process;
  readonly accept: (socket: ConnectionEnd) => void;
}

/** How likely the network does what to a piece that a client sends, and how long pieces take. */
export interface Weather {
  /** Milliseconds that a piece takes. */
  latency: readonly [number, number];
  /** A piece takes up to this many milliseconds more… */
  delay: number;
  /** … with this probability. */
  delayed: number;
  /** The connection is reset, and the piece does not arrive. */
  lost: number;
  /** The piece arrives, and then the connection is reset: the answer does not arrive. */
  answerLost: number;
  /** The piece is carried out twice, as by a proxy that has got no answer. */
  repeated: number;
}

export const CALM: Weather = { latency: [0.1, 0.6], delay: 0, delayed: 0, lost: 0, answerLost: 0, repeated: 0 };

/** Milliseconds after which a proxy sends a request again. */
const PROXY_PATIENCE: readonly [number, number] = [1, 200];

/** Sees what clients do. */
export interface NetworkObserver {
  /** A client passes a request to its transport. */
  sent(client: Process): void;
  /** A client opens a connection. @param open number of those that it has */
  connects(client: Process, open: number): void;
  /** A piece of an answer arrives. */
  received(client: Process): void;
}

/** Called when a message is on its way. @param from the process that has sent it */
type OnSent = (from: Process | undefined) => void;

/** A network in memory. What is sent over a link that is cut arrives when the link is mended, as TCP does it. */
export class Network {
  weather: Weather = CALM;
  observer: NetworkObserver | undefined;
  /** The connections that processes have open. */
  readonly open = new Set<Connection>();
  /** Names of the clients of which a proxy has repeated an append: that may leave an entry which nobody knows of. */
  readonly appendedTwice = new Set<string>();
  readonly counts = { connections: 0, delayed: 0, lost: 0, answerLost: 0, repeated: 0 };
  readonly #scheduler: Scheduler;
  readonly #random: Random;
  readonly #trace: (line: string) => void;
  readonly #listeners = new Map<string, Listener>();
  /** The links that are cut, as `from>to`, each with what waits for its end. */
  readonly #cuts = new Map<string, (() => void)[]>();
  readonly #awaited = new Map<Process, { readonly what: Awaited; readonly then: OnSent }>();
  #ports = 0;

  constructor(scheduler: Scheduler, random: Random, trace: (line: string) => void) {
    this.#scheduler = scheduler;
    this.#random = random;
    this.#trace = trace;
  }

  listen(address: string, listener: Listener): void {
    this.#listeners.set(address, listener);
  }

  close(address: string): void {
    this.#listeners.delete(address);
  }

  /** Where the members of the cluster listen, for its name service. */
  readonly members: { readonly host: string; readonly port: number }[] = [];

  /** Cuts the link off in one direction: what is sent stays on the way. */
  cut(from: string, to: string): void {
    const link = `${from}>${to}`;
    if (!this.#cuts.has(link)) this.#cuts.set(link, []);
  }

  mend(from: string, to: string): void {
    const link = `${from}>${to}`;
    const waiting = this.#cuts.get(link) ?? [];
    this.#cuts.delete(link);
    for (const go of waiting) this.#scheduler.after(this.#latency(), go);
  }

  mendAll(): void {
    for (const link of [...this.#cuts.keys()]) {
      const [from = '', to = ''] = link.split('>');
      this.mend(from, to);
    }
  }

  isCut(from: string, to: string): boolean {
    return this.#cuts.has(`${from}>${to}`);
  }

  /**
   * Connects the running process.
   * @param find finds the address, perhaps later
   */
  connect(
    find: (found: (address: string) => void) => void,
    timeout: number,
    callback: (error: Error | null, socket: ConnectionEnd | null) => void,
  ) {
    const client = currentProcess();
    this.#ports += 1;
    const connection = new Connection(this, client, undefined, ['', this.#ports]);
    const { near } = connection;
    if (client.isKilled) {
      // What it still does in the step in which it is killed does not happen.
      this.open.delete(connection);
      return near;
    }
    this.observer?.connects(client, [...this.open].filter((open) => open.client === client).length);
    let isSettled = false;
    const settle = (error: Error | null): void => {
      if (isSettled) return;
      isSettled = true;
      timer();
      if (error) {
        near.destroy(error);
        callback(error, null);
      } else if (!near.destroyed) callback(null, near);
    };
    const timer = client.after(timeout, () => settle(new errors.ConnectTimeoutError('Connect Timeout Error')));
    near.once('close', () => settle(near.errored ?? new Error('closed')));
    find((address) => this.#connect(client, connection, address, settle));
    return near;
  }

  #connect(client: Process, connection: Connection, address: string, settle: (error: Error | null) => void): void {
    const there = this.#listeners.get(address);
    const [from, to] = [client.name, there?.process.name ?? address];
    const { far } = connection;
    connection.locate(address, there?.process);
    this.send(from, to, () => {
      const listener = this.#listeners.get(address);
      if (!listener || listener.process.isKilled) {
        const refused = Object.assign(new Error(`connect ECONNREFUSED ${address}`), { code: 'ECONNREFUSED' });
        return this.send(to, from, () => client.receive(() => settle(refused)));
      }
      this.counts.connections += 1;
      // A stopped process accepts as well: its system does that.
      connection.accepted(listener.process);
      this.send(to, from, () => client.receive(() => settle(null)));
      listener.process.receive(() => {
        if (!far.destroyed) listener.accept(far);
      });
    });
  }

  /** Calls `then` when such a message is on its way to a process. Returns a function that cancels that. */
  onceSentTo(process: Process, what: Awaited, then: OnSent): () => void {
    const awaited = { what, then };
    this.#awaited.set(process, awaited);
    return () => {
      if (this.#awaited.get(process) === awaited) this.#awaited.delete(process);
    };
  }

  /**
   * Call this when messages are on their way to a process.
   * @param requests those among them
   * @param from who has sent those
   */
  noteMessages(process: Process, requests: readonly RequestMessage[] = [], from?: Process): void {
    const awaited = this.#awaited.get(process);
    if (!awaited || (awaited.what !== 'a message' && !requests.some(REQUESTS[awaited.what]))) return;
    this.#awaited.delete(process);
    awaited.then(from);
  }

  /** Sends a piece from one process to the other: `arrive` is called when it arrives. */
  send(from: string, to: string, arrive: () => void): void {
    const waiting = this.#cuts.get(`${from}>${to}`);
    if (waiting) waiting.push(arrive);
    else this.#scheduler.after(this.#latency(), arrive);
  }

  /** Call this when the running process passes a request to its transport. */
  noteRequest(): void {
    this.observer?.sent(currentProcess());
  }

  /** Decides what happens to requests that are sent together. */
  fate(): 'lost' | 'answerLost' | 'repeated' | undefined {
    const { lost, answerLost, repeated } = this.weather;
    const at = this.#random.next();
    if (at < lost) return 'lost';
    if (at < lost + answerLost) return 'answerLost';
    return at < lost + answerLost + repeated ? 'repeated' : undefined;
  }

  count(what: 'lost' | 'answerLost' | 'repeated', about: string): void {
    this.counts[what] += 1;
    this.#trace(`network: ${what} ${about}`);
  }

  /** As a proxy that gets no answer, and then sends the same again: carries a piece out whose answer nobody gets, then calls `again`. */
  repeat(address: string, messages: readonly RequestMessage[], again: () => void): void {
    this.#scheduler.after(this.#latency(), () => {
      const listener = this.#listeners.get(address);
      if (!listener || listener.process.isKilled) return again();
      this.#ports += 1;
      const proxy = new Process('proxy', this.#scheduler, '');
      const connection = new Connection(this, proxy, listener.process, [address, this.#ports]);
      this.open.delete(connection);
      listener.process.receive(() => listener.accept(connection.far));
      listener.process.receive(() => connection.far.deliver(messages));
      const hangUp = (): void => void connection.far.destroy();
      listener.process.events.once('killed', hangUp);
      this.#scheduler.after(this.#random.between(...PROXY_PATIENCE), () => {
        listener.process.events.off('killed', hangUp);
        listener.process.receive(hangUp);
        again();
      });
    });
  }

  #latency(): number {
    const { latency, delay, delayed } = this.weather;
    const isDelayed = this.#random.chance(delayed);
    if (isDelayed) this.counts.delayed += 1;
    return this.#random.between(...latency) + (isDelayed ? this.#random.between(0, delay) : 0);
  }
}
