import { now } from '../support/stalls/stalls.mjs';
import type { Stop } from './checker.ts';
import type { Event, Fault, FaultKind } from './history.ts';

/** Gathers what contenders tell, and what is done to them and to the cluster. */
export class Recorder {
  readonly #histories = new Map<string, Event[]>();
  readonly #faults: Fault[] = [];
  readonly #present = new Map<object, Omit<Fault, 'to'>>();

  /** Takes what contenders of that lock tell. */
  listener(lock: string): (event: Event) => void {
    const history = this.#histories.get(lock) ?? [];
    this.#histories.set(lock, history);
    return (event) => history.push(event);
  }

  /** What the contenders of that lock have told. */
  history(lock: string): readonly Event[] {
    return this.#histories.get(lock) ?? [];
  }

  /** Who holds that lock, as far as anyone has told. */
  holder(lock: string): string | undefined {
    const history = this.history(lock);
    const begin = history.findLastIndex(({ kind }) => kind === 'held');
    const who = history[begin]?.who;
    return history.slice(begin + 1).some((event) => event.who === who) ? undefined : who;
  }

  /** Call it before the fault begins; it returns what is to be called once that is over. */
  begin(kind: FaultKind, targets: readonly string[]): () => void {
    const fault = { kind, targets, from: now() };
    this.#present.set(fault, fault);
    return () => {
      this.#present.delete(fault);
      this.#faults.push({ ...fault, to: now() });
    };
  }

  /** All faults, in the order they began; those that are not over last for ever. */
  get faults(): readonly Fault[] {
    const present = [...this.#present.values()].map((fault) => ({ ...fault, to: Number.POSITIVE_INFINITY }));
    return [...this.#faults, ...present].sort((a, b) => a.from - b.from);
  }

  get stops(): readonly Stop[] {
    return this.faults
      .filter(({ kind }) => kind === 'contender stopped' || kind === 'holder stopped')
      .flatMap(({ targets, from, to }) => targets.map((who) => ({ who, from, to })));
  }
}
