import type { Process } from '../virtual/process.ts';
import { ConnectionEnd } from './end.ts';
import type { RequestMessage } from './message.ts';
import type { Network } from './network.ts';

/** A connection, with its two ends. What one end sends arrives at the other in order. */
export class Connection {
  readonly near: ConnectionEnd;
  readonly far: ConnectionEnd;
  readonly #network: Network;
  readonly client: Process;
  #server: Process | undefined;
  #address: string;
  /** What waits behind requests that a proxy repeats. */
  #held: (readonly RequestMessage[])[] | undefined;
  readonly #ends: Record<'near' | 'far', { readonly queue: (() => void)[]; isBusy: boolean }>;

  constructor(network: Network, client: Process, server: Process | undefined, remote: readonly [string, number]) {
    this.#network = network;
    this.client = client;
    this.#server = server;
    [this.#address] = remote;
    const end = () => ({ queue: [], isBusy: false });
    this.#ends = { near: end(), far: end() };
    this.near = new ConnectionEnd(remote, {
      onMessages: (messages) => this.#sendRequests(messages as readonly RequestMessage[]),
      onEnd: () => this.#toServer(() => this.far.deliverEnd()),
      onReset: () => this.#toServer(() => this.far.deliverReset()),
    });
    this.far = new ConnectionEnd([client.name, remote[1]], {
      onMessages: (messages) => {
        network.noteMessages(client);
        this.#toClient(() => {
          network.observer?.received(client);
          this.near.deliver(messages);
        });
      },
      onEnd: () => this.#toClient(() => this.near.deliverEnd()),
      onReset: () => this.#toClient(() => this.near.deliverReset()),
    });
    // What a killed process still runs, because its sockets are closed, reaches nobody.
    if (!client.isKilled) network.open.add(this);
    const close = (): void => void network.open.delete(this);
    this.near.once('close', close);
    // The system of a killed process closes its connections.
    this.#onKilled(client, () => {
      close();
      this.#toServer(() => this.far.deliverReset());
    });
  }

  /** Does something when a process is killed, unless both ends are closed by then: nothing refers to the connection any more. */
  #onKilled({ events }: Process, then: () => void): void {
    events.once('killed', then);
    const forget = (): void => {
      if (this.near.destroyed && this.far.destroyed) events.off('killed', then);
    };
    this.near.once('close', forget);
    this.far.once('close', forget);
  }

  toString(): string {
    const { near, far } = this;
    const state = ({ destroyed, readableEnded, writableEnded }: ConnectionEnd) =>
      `${destroyed ? 'destroyed' : 'open'}${readableEnded ? ', has read the end' : ''}${writableEnded ? ', has sent the end' : ''}`;
    return `${this.client.name} (${state(near)}) to ${this.#address} (${state(far)})`;
  }

  locate(address: string, server: Process | undefined): void {
    this.#address = address;
    this.#server = server;
  }

  accepted(server: Process): void {
    this.#server = server;
    this.#onKilled(server, () => {
      this.#toClient(() => this.near.deliverReset());
      this.far.destroy();
    });
  }

  #sendRequests(messages: readonly RequestMessage[]): void {
    if (this.#held) this.#held.push(messages);
    else this.#decide(messages);
  }

  #decide(messages: readonly RequestMessage[]): void {
    const arrive = (): void => {
      if (this.#server) this.#network.noteMessages(this.#server, messages, this.client);
      this.#toServer(() => this.far.deliver(messages));
    };
    const fate = this.#network.fate();
    if (fate === undefined) {
      arrive();
      return;
    }
    const [{ method, path } = { method: '', path: '' }] = messages;
    this.#network.count(fate, `${this.client.name} ${method} ${path}`);
    if (fate === 'repeated') {
      if (messages.some(isAppend)) this.#network.appendedTwice.add(this.client.name);
      this.#held = [];
      this.#network.repeat(this.#address, messages, () => {
        arrive();
        const held = this.#held ?? [];
        this.#held = undefined;
        for (const later of held) this.#sendRequests(later);
      });
      return;
    }
    if (fate === 'answerLost') arrive();
    this.#toServer(() => this.far.deliverReset());
    this.#toClient(() => this.near.deliverReset());
  }

  #toServer(arrive: () => void): void {
    this.#pass('far', this.client.name, this.#server, arrive);
  }

  #toClient(arrive: () => void): void {
    if (this.#server && !this.client.isKilled) this.#pass('near', this.#server.name, this.client, arrive);
  }

  /** Passes something on when everything before it has arrived. */
  #pass(to: 'near' | 'far', from: string, receiver: Process | undefined, arrive: () => void): void {
    const end = this.#ends[to];
    const go = (): void => {
      end.isBusy = true;
      this.#network.send(from, receiver?.name ?? this.#address, () => {
        if (to === 'far' && receiver?.isKilled) this.#toClient(() => this.near.deliverReset());
        receiver?.receive(arrive);
        const next = end.queue.shift();
        if (next) next();
        else end.isBusy = false;
      });
    };
    if (end.isBusy) end.queue.push(go);
    else go();
  }
}

/** Whether a request may append an entry. */
const isAppend = ({ method, path }: RequestMessage): boolean =>
  method === 'POST' && (path.startsWith('/v2/keys/') || path.endsWith('/kv/txn'));
