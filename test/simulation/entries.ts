import type { Disturbances } from './disturbances.ts';
import { whatIsBefore } from './order.ts';
import type { Plan } from './plan.ts';
import type { CallReport, Report } from './report.ts';
import { queueOf, type Stored } from './stored.ts';
import type { Process } from './virtual/process.ts';
import type { Scheduler } from './virtual/scheduler.ts';

/** Milliseconds between two looks. */
const LOOK = 1000;

/** Milliseconds without a fault within which the entry of a call that has ended is removed. */
const REMOVED_WITHIN = 6000;

/** Milliseconds, besides a third of its TTL, within which a client notices that nothing is before its entry, if most members can serve it. */
const NOTICED_WITHIN = 3500;

/** A call of a client, which alone makes entries with this label; or a Lock that nobody uses any more. */
interface Owner {
  readonly process: Process;
  /** Number of its client. */
  readonly client: number;
  readonly what: string;
  /** Whether it waits for one lock only. */
  isWaiting: boolean;
  /** When it has ended; undefined: it has not. */
  endedAt: number | undefined;
  /** Until when `holdAtLeast` may keep its entry. */
  keptUntil: number;
  /** Milliseconds for which a new leader lets that entry live from its election on. */
  kept: number;
  /** When its first entry was seen. */
  seenAt: number | undefined;
}

export interface EntriesOptions {
  readonly plan: Plan;
  readonly scheduler: Scheduler;
  readonly disturbances: Disturbances;
  readonly stored: () => readonly Stored[];
  /** Whether a client may have left an entry that it cannot know of. */
  readonly mayLeave: (process: Process) => boolean;
  readonly violate: (what: string) => void;
}

/**
 * Watches the entries of the calls of managers: that of a call which has ended must go soon, and a call whose entry is the first one must
 * notice that soon. Watches those of Locks when nobody uses them any more.
 */
export class Entries {
  readonly #options: EntriesOptions;
  /** By label, or by uuid. */
  readonly #owners = new Map<string, Owner>();
  /** When each key was first seen, and first seen with nothing before it. */
  readonly #seen = new Map<string, { readonly at: number; firstAt: number | undefined }>();

  constructor(options: EntriesOptions) {
    this.#options = options;
    this.#lookLater();
  }

  /** Returns what else to do when a program reports. */
  watching(process: Process, client: number, report: Report): Report {
    return {
      ...report,
      call: (what, timeout, options = {}) => {
        const call = report.call(what, timeout, options);
        return options.label === undefined
          ? call
          : this.#call(call, options.label, { process, client, what, isWaiting: options.isForSeveral !== true });
      },
      hold: (claim) => {
        const { key, holdAtLeast } = claim;
        if (key !== undefined) this.#holds(key, holdAtLeast);
        return report.hold(claim);
      },
      drops: (uuid, ttl) => {
        const { now } = this.#options.scheduler;
        // A call that fails in an outage may leave the entry of an earlier one to expire.
        const kept = ttl * 1000;
        const about = { process, client, what: `the use of the Lock ${uuid}`, isWaiting: false, seenAt: undefined };
        this.#owners.set(uuid, { ...about, endedAt: now, keptUntil: now + kept + this.#late, kept });
      },
      closes: (owners) => {
        // What a closed client leaves is judged apart.
        for (const [label, { process: its }] of this.#owners) if (its === process) this.#owners.delete(label);
        return report.closes(owners);
      },
    };
  }

  #call(call: CallReport, label: string, about: Pick<Owner, 'process' | 'client' | 'what' | 'isWaiting'>): CallReport {
    const owner: Owner = { ...about, endedAt: undefined, keptUntil: 0, kept: 0, seenAt: undefined };
    this.#owners.set(encodeURIComponent(label), owner);
    return {
      ...call,
      settled: (outcome) => {
        owner.isWaiting = false;
        call.settled(outcome);
      },
      ended: () => {
        owner.isWaiting = false;
        owner.endedAt = this.#options.scheduler.now;
        call.ended();
      },
    };
  }

  #holds(key: string, holdAtLeast = 0): void {
    const { scheduler, disturbances, stored, violate } = this.#options;
    const { now } = scheduler;
    const entry = stored().find((one) => one.key === key);
    const owner = entry && this.#ownerOf(entry);
    if (!owner) return;
    owner.kept = holdAtLeast * 1000;
    owner.keptUntil = now + owner.kept + this.#late;
    const { process, client, what, seenAt = now, isWaiting } = owner;
    const replacedAt = disturbances.replacedAt(now);
    // Unless it knew of its first entry.
    const isKnown = seenAt < replacedAt && disturbances.quietSince(client, replacedAt - 1) < seenAt - LOOK;
    if (isKnown && isWaiting) violate(`${process.name}: ${what} has moved from one cluster to another`);
  }

  /** Milliseconds by which an entry may expire later than its TTL says: another leader sees that by its own clock. */
  get #late(): number {
    const { members } = this.#options.plan;
    return Math.max(...members) - Math.min(...members);
  }

  /** The value of an entry of a Lock is its uuid. */
  #ownerOf({ value }: Stored): Owner | undefined {
    const [uuid = '', label = uuid] = value.split('@');
    return this.#owners.get(label);
  }

  #lookLater(): void {
    this.#options.scheduler.after(LOOK, () => {
      this.#look(this.#options.stored());
      this.#lookLater();
    });
  }

  #look(stored: readonly Stored[]): void {
    const { scheduler } = this.#options;
    const { now } = scheduler;
    const present = new Set<string>();
    for (const entry of stored) {
      const owner = this.#ownerOf(entry);
      if (!owner || owner.process.isKilled) continue;
      const id = `${entry.store} ${entry.key} ${entry.created}`;
      present.add(id);
      const seen = this.#seen.get(id) ?? { at: now, firstAt: undefined };
      this.#seen.set(id, seen);
      owner.seenAt ??= now;
      if (owner.endedAt === undefined) this.#checkFirst(entry, owner, seen, stored);
      else this.#checkGone(entry, owner, seen.at);
    }
    for (const id of this.#seen.keys()) if (!present.has(id)) this.#seen.delete(id);
  }

  #checkGone(
    { key, store }: Stored,
    { process, client, what, endedAt = 0, keptUntil, kept }: Owner,
    seenAt: number,
  ): void {
    const { scheduler, disturbances, mayLeave, violate } = this.#options;
    const { now } = scheduler;
    const since = Math.max(endedAt, keptUntil, seenAt, disturbances.quietSince(client, now));
    if (now - since > REMOVED_WITHIN + kept && !mayLeave(process))
      violate(`${process.name}: ${what} has ended, but its key ${key} of ${store} is left`);
  }

  #checkFirst(
    entry: Stored,
    { process, client, what, isWaiting }: Owner,
    seen: { firstAt: number | undefined },
    stored: readonly Stored[],
  ): void {
    const { plan, scheduler, disturbances, violate } = this.#options;
    const { now } = scheduler;
    const queue = queueOf(entry, stored);
    // That of a python-etcd that has created its expired key again keeps nobody out, but those behind it wait for it.
    const isBehindAnother = queue.some(({ rank, created }) => rank < entry.rank && created !== rank);
    if (!isWaiting || plan.api === 'both' || isBehindAnother || whatIsBefore(entry, queue)) {
      seen.firstAt = undefined;
      return;
    }
    seen.firstAt ??= now;
    const { ttl = 0 } = plan.clients[client] ?? {};
    const silence = (ttl * 1000) / 3;
    const since = Math.max(seen.firstAt, disturbances.servedSince(client, now));
    const sinceFault = Math.max(since, disturbances.begunAt(client, now));
    // Another fault may silence the member that it asks next.
    if (now - sinceFault > NOTICED_WITHIN + silence || now - since > NOTICED_WITHIN + 1000 + 2 * silence)
      violate(`${process.name}: ${what} still waits, but nothing is before its key ${entry.key} of ${entry.store}`);
  }
}
