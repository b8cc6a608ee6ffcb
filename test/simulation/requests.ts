import { channel, subscribe, unsubscribe } from 'node:diagnostics_channel';
import type { RequestTrace } from '../../src/index.ts';
import type { Checker } from './checker.ts';
import { currentProcess, type Process } from './virtual/process.ts';

const EVENTS = ['start', 'queued', 'requeued', 'renewed', 'renewal-failed', 'outcome'] as const;
type Event = (typeof EVENTS)[number];

/** Subscribes to the events of all requests, as a program that measures them: each must end with one outcome. */
export class Requests {
  /** Those without an outcome, each with its process. */
  readonly #open = new Map<RequestTrace, Process>();
  readonly #end: () => void;

  /** @param ttlOf returns the TTL of a process in seconds */
  constructor(checker: Checker, ttlOf: (process: Process) => number | undefined) {
    const violate = (what: string): void => checker.violate(`${currentProcess().name}: ${what}`);
    const on: Readonly<Record<Event, (trace: RequestTrace) => void>> = {
      start: (trace) => void this.#open.set(trace, currentProcess()),
      queued: ({ name, position }) => {
        if (position !== undefined && position < 1) violate(`a request for ${name} is queued at position ${position}`);
      },
      requeued: ({ requeueCause }) => {
        const process = currentProcess();
        checker.requeues(process, ttlOf(process), requeueCause);
      },
      renewed: ({ name, renewal }) => {
        if (!renewal || renewal.error !== undefined) violate(`a renewal for ${name} has succeeded with an error`);
      },
      'renewal-failed': ({ name, renewal }) => {
        if (renewal?.error === undefined) violate(`a renewal for ${name} has failed without an error`);
      },
      outcome: (trace) => {
        if (!this.#open.delete(trace)) violate(`a request for ${trace.name} has another outcome: ${trace.outcome}`);
      },
    };
    const listeners = EVENTS.map((event) => {
      const { name } = channel(`tracing:etcd-v2-lock:request:${event}`);
      const listener = (trace: unknown): void => on[event](trace as RequestTrace);
      subscribe(name, listener);
      return () => unsubscribe(name, listener);
    });
    this.#end = () => {
      for (const end of listeners) end();
    };
  }

  /** Returns the requests without an outcome, other than those of processes that were killed. */
  get left(): readonly string[] {
    return [...this.#open]
      .filter(([, { isKilled }]) => !isKilled)
      .map(([{ name }, process]) => `a request of ${process.name} for ${name} has no outcome`);
  }

  unsubscribe(): void {
    this.#end();
  }
}
