import type { NetworkObserver } from './network/network.ts';
import type { Process } from './virtual/process.ts';

/** Milliseconds and requests without a single answer after which a client must know that there is an outage. */
const KNOWN_AFTER = 10_000;
const KNOWN_BY = 20;

/** Requests that a client of one API may send within a second of an outage: 4 attempts, each with a read behind it. */
const MOST_IN_OUTAGE = 8;

/** Connections that a client of one API with a few workers may have: in an outage of 20 s, each of its 4 requests a second may need one. */
const MOST_CONNECTIONS = 100;

/** The requests of a client since its last answer. */
interface Silence {
  readonly since: number;
  requests: number;
  /** Times of the last ones. */
  recent: readonly number[];
}

/** Checks how many requests and connections the clients of this package make. */
export class Traffic implements NetworkObserver {
  readonly #violate: (what: string) => void;
  readonly #apis: ReadonlyMap<string, number>;
  readonly #silences = new Map<Process, Silence>();

  /** @param apis number of APIs that each client uses, by name: each API has a rate limit and connections of its own */
  constructor(violate: (what: string) => void, apis: ReadonlyMap<string, number>) {
    this.#violate = violate;
    this.#apis = apis;
  }

  connects(client: Process, open: number): void {
    if (open > MOST_CONNECTIONS * this.#apisOf(client)) this.#violate(`${client.name} has ${open} connections`);
  }

  sent(client: Process): void {
    const now = client.now();
    const silence = this.#silences.get(client) ?? { since: now, requests: 0, recent: [] };
    this.#silences.set(client, silence);
    silence.requests += 1;
    silence.recent = [...silence.recent.filter((at) => at > now - 1000), now];
    const isKnown = now - silence.since > KNOWN_AFTER && silence.requests > KNOWN_BY;
    if (isKnown && silence.recent.length > MOST_IN_OUTAGE * this.#apisOf(client))
      this.#violate(`${client.name} has sent ${silence.recent.length} requests within a second of an outage`);
  }

  received(client: Process): void {
    this.#silences.delete(client);
  }

  #apisOf({ name }: Process): number {
    return this.#apis.get(name) ?? Number.POSITIVE_INFINITY;
  }
}
