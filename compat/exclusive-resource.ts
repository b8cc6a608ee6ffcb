/** A resource that fails when two users use it at the same time. */
export class ExclusiveResource {
  #user: string | undefined;

  /** @throws {Error} when somebody else is using the resource */
  async use<T>(user: string, work: () => Promise<T>): Promise<T> {
    if (this.#user !== undefined) throw new Error(`${user} overlaps with ${this.#user}`);
    this.#user = user;
    try {
      return await work();
    } finally {
      this.#user = undefined;
    }
  }
}
