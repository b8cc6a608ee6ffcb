import type { IncomingHttpHeaders, IncomingMessage } from 'node:http';
import type { WebServer } from '../../../src/server/front/http-server.ts';
import type { Scheduler } from '../virtual/scheduler.ts';
import type { Counts } from './counts.ts';
import type { Member } from './member.ts';

/** Milliseconds after a stop in which a member carries out what has waited. */
const BACKLOG = 50;

/** Counts the writes that are carried out although nobody waits for them any more. */
export class LateWrites {
  readonly #member: Member;
  readonly #scheduler: Scheduler;
  readonly #counts: Counts;

  constructor(member: Member, scheduler: Scheduler, counts: Counts) {
    this.#member = member;
    this.#scheduler = scheduler;
    this.#counts = counts;
  }

  /** Call this when a write is carried out whose client has hung up. */
  count(): void {
    this.#counts.writesAfterHangUp += 1;
    if (this.#scheduler.now - this.#member.continuedAt < BACKLOG) this.#counts.writesAfterStop += 1;
  }
}

/** The requests of a server, by their headers: whether their clients have hung up. */
export class HungUp {
  readonly #requests = new WeakMap<IncomingHttpHeaders, IncomingMessage>();

  constructor(server: WebServer) {
    server.on('request', (request) => this.#requests.set(request.headers, request));
  }

  has(headers: IncomingHttpHeaders): boolean {
    return this.#requests.get(headers)?.socket.destroyed ?? false;
  }
}
