interface Settling {
  /** Key of the entry. */
  readonly key: string;
  /** Id of the cluster of the entry; undefined if it is not known yet. */
  readonly clusterId: string | undefined;
}

/** The tickets of this process that still remove keys in the background. A later ticket for a key takes over that work. */
export class Unsettled<T extends Settling> {
  readonly #byKey = new Map<string, Set<T>>();

  add(ticket: T): void {
    const tickets = this.#byKey.get(ticket.key) ?? new Set();
    this.#byKey.set(ticket.key, tickets.add(ticket));
  }

  delete(ticket: T): void {
    const tickets = this.#byKey.get(ticket.key);
    tickets?.delete(ticket);
    if (tickets?.size === 0) this.#byKey.delete(ticket.key);
  }

  has(ticket: T): boolean {
    return this.#byKey.get(ticket.key)?.has(ticket) ?? false;
  }

  /** Returns the other tickets for the same key, except those certainly of another cluster: it may have a lock with the same name. */
  othersFor(ticket: T): T[] {
    const mayBeSame = ({ clusterId: one }: T, { clusterId: other }: T): boolean =>
      one === undefined || other === undefined || one === other;
    return [...(this.#byKey.get(ticket.key) ?? [])].filter((other) => other !== ticket && mayBeSame(other, ticket));
  }
}
