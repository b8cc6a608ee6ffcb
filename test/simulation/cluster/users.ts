import type { V3Member } from '../../../src/server/v3/member.ts';

/** The user that processes log in as, if the cluster has users. */
export const USER = { username: 'app', password: 'secret' };

const ROOT = 'root';
const ROLE = 'locks';
const READ_AND_WRITE = 2;

/** Turns authentication on: the user may read and write the keys of locks, and nothing else. */
export function addUsers({ auth }: V3Member): void {
  const { username, password } = USER;
  auth.addRole(ROOT);
  auth.addUser({ name: ROOT, password, options: undefined });
  auth.grantRole(ROOT, ROOT);
  auth.addRole(ROLE);
  auth.grantPermission(ROLE, { permType: READ_AND_WRITE, key: '/_locks/', range_end: '/_locks0' });
  auth.addUser({ name: username, password, options: undefined });
  auth.grantRole(username, ROLE);
  auth.enable();
}

/** The tokens of one member: it forgets those that were not used there for some minutes, and all when it is restarted. */
export class TokensOfMember {
  readonly #known = new Set<string>();
  readonly #forgotten = new Set<string>();

  /** Returns the number of tokens. */
  forget(): number {
    const { size } = this.#known;
    for (const token of this.#known) this.#forgotten.add(token);
    this.#known.clear();
    return size;
  }

  /** Whether the member does not know a token any more. */
  hasForgotten(token: string): boolean {
    if (this.#forgotten.has(token)) return true;
    this.#known.add(token);
    return false;
  }
}
