import { now } from '../support/stalls/stalls.mjs';
import type { Stop } from './checker.ts';
import type { Event, Fault, FaultKind, Stall } from './history.ts';

/** Collects the events and stalls that contenders report, and all faults. */
export class Recorder {
  readonly #histories = new Map<string, Event[]>();
  readonly #faults: Fault[] = [];
  readonly #stalls: Stall[] = [];
  readonly #present = new Map<object, Omit<Fault, 'to'>>();

  /** Returns a listener for events of contenders of that lock. */
  listener(lock: string): (event: Event | Stall) => void {
    const history = this.#histories.get(lock) ?? [];
    this.#histories.set(lock, history);
    return (event) => (event.kind === 'stalled' ? this.#stalls.push(event) : history.push(event));
  }

  /** Returns the events of contenders of that lock. */
  history(lock: string): readonly Event[] {
    return this.#histories.get(lock) ?? [];
  }

  /** Returns the holder of that lock, according to the events so far. */
  holder(lock: string): string | undefined {
    const history = this.history(lock);
    const begin = history.findLastIndex(({ kind }) => kind === 'held');
    const who = history[begin]?.who;
    return history.slice(begin + 1).some((event) => event.who === who) ? undefined : who;
  }

  /** Records the beginning of a fault; call it before the fault. Call the function that it returns once the fault is over. */
  begin(kind: FaultKind, targets: readonly string[]): () => void {
    const fault = { kind, targets, from: now() };
    this.#present.set(fault, fault);
    return () => {
      this.#present.delete(fault);
      this.#faults.push({ ...fault, to: now() });
    };
  }

  /** All faults, in the order they began; the end of a fault that is not over is Infinity. */
  get faults(): readonly Fault[] {
    const present = [...this.#present.values()].map((fault) => ({ ...fault, to: Number.POSITIVE_INFINITY }));
    return [...this.#faults, ...present].sort((a, b) => a.from - b.from);
  }

  get stalls(): readonly Stall[] {
    return this.#stalls;
  }

  get stops(): readonly Stop[] {
    return this.faults
      .filter(({ kind }) => kind === 'contender stopped' || kind === 'holder stopped')
      .flatMap(({ targets, from, to }) => targets.map((who) => ({ who, from, to })));
  }
}
