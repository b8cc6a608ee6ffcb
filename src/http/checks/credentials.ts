import { show } from '../../base/checks.ts';

/** As which user to ask etcd. */
export interface UserOptions {
  /** User name for basic authentication, or for the login on v3; requires `password`. */
  readonly username?: string;
  /**
   * Password of the user; requires `username`. A function is called before the first request, and again when etcd refuses the
   * password: after that, the request is sent once more if the new password differs. Calls at the same time share its answer. What it
   * throws is the `cause` of an `EtcdInsufficientPermissions`.
   */
  readonly password?: string | (() => string | Promise<string>);
}

/** Returns a user name for a message, cut at the first unusual character: a password may follow. */
export function showUser(username: string): string {
  const [rest = ''] = /[^\p{L}\p{M}\p{N}._@+-].*$/su.exec(username) ?? [];
  const name = username.slice(0, username.length - rest.length);
  return show(name + (rest.startsWith(':') ? ':…' : rest && '…'));
}

/**
 * Checks a user name and a password.
 * @throws {RangeError} if one of them is invalid or missing; the message never shows the password
 */
export function checkUser({ username, password }: UserOptions): void {
  if (username === undefined && password === undefined) return;
  if (typeof username !== 'string' || username === '' || username.includes(':')) {
    const shown = typeof username === 'string' ? showUser(username) : typeof username;
    throw new RangeError(`username must be a non-empty string without ":", got ${shown}`);
  }
  if (typeof password !== 'string' && typeof password !== 'function')
    throw new RangeError(`username ${showUser(username)} needs a password, got ${typeof password}`);
}

/** Returns the header of basic authentication. */
export const basicAuthorization = (username: string, password: string): string =>
  `Basic ${Buffer.from(`${username}:${password}`).toString('base64')}`;
