/** The login to etcd's v3 API, and the errors for missing permissions. */
import { EtcdConnectionFailed, EtcdException, EtcdInsufficientPermissions, EtcdUnusableAnswer } from '../../errors.ts';
import { showUser } from '../../http/checks/credentials.ts';
import type { WireAnswer } from '../../http/message.ts';
import { decodeBody, FailedPrecondition } from './errors.ts';
import { decodeText, Fields, type Json } from './messages.ts';

export const AUTHENTICATE = '/auth/authenticate';

/** Result of a login at one member. */
export interface Token {
  /** Sent with each request; undefined if none is needed, because authentication is not enabled or no user was given. */
  readonly text: string | undefined;
}

/**
 * Returns the token in the answer to {@link AUTHENTICATE}. An error about a refused login never contains the password.
 * @throws {EtcdInsufficientPermissions} if etcd refuses the user or the password
 */
export function decodeToken(answer: WireAnswer, password: string): Token {
  try {
    const text = new Fields(answer, decodeBody(answer)).text('token');
    if (text !== '' && /^[\x21-\x7e]+$/.test(text)) return { text };
    throw new EtcdUnusableAnswer('no token', { httpStatus: answer.status });
  } catch (error) {
    // Authentication is not enabled. As on etcd v2, credentials are then ignored.
    if (error instanceof FailedPrecondition) return { text: undefined };
    if (!(error instanceof EtcdException) || error instanceof EtcdConnectionFailed) throw error;
    const { errorCode, httpStatus, message } = error;
    const fields = { errorCode, httpStatus };
    if (error instanceof EtcdUnusableAnswer && httpStatus !== 404)
      throw new EtcdUnusableAnswer(`the answer to the login is not from etcd's v3 gateway: ${httpStatus}`, fields);
    if (error instanceof EtcdUnusableAnswer) throw error;
    const isSafe = password === '' || !message.includes(password);
    throw new EtcdInsufficientPermissions(isSafe ? message : 'etcd refused the user name or password', fields);
  }
}

/** What the message of {@link refused} contains. */
export interface Refusal {
  readonly member: string;
  readonly username: string | undefined;
  /** The key or lease of the request; undefined: the login itself was refused. */
  readonly subject?: string | undefined;
}

/** Returns `error` with a message that also contains the member, the user, and the key or lease. Keeps the class. */
export function refused(
  error: EtcdInsufficientPermissions,
  { member, username, subject }: Refusal,
): EtcdInsufficientPermissions {
  const who = username === undefined ? '(no user name sent)' : `as user ${showUser(username)}`;
  const what = subject === undefined ? 'no access' : `no access to ${subject}`;
  const { errorCode, httpStatus, message, cause } = error;
  const ErrorClass = error.constructor as typeof EtcdInsufficientPermissions;
  return new ErrorClass(`${member}: ${what} ${who}: ${message}`, { errorCode, httpStatus, cause });
}

/** Returns the key or the lease that a request is about, if any. */
export function subjectOf(message: Json): string | undefined {
  return keyIn(message) ?? (message['ID'] === undefined ? undefined : `lease ${message['ID']}`);
}

/** Returns the first key in a message, at any depth. */
function keyIn(value: unknown): string | undefined {
  if (typeof value !== 'object' || value === null) return undefined;
  const { key } = value as { key?: unknown };
  if (typeof key === 'string') return decodeText(key);
  for (const inner of Object.values(value)) {
    const found = keyIn(inner);
    if (found !== undefined) return found;
  }
  return undefined;
}
