/** How a call that has one answer is made: from the kinds of its messages, who may ask, and what it does. */
import { UserAccess } from '../auth/access.ts';
import type { V3Member } from '../member.ts';
import type { Decode, Json } from './decode.ts';
import { encode } from './encode.ts';
import type { Kind } from './fields.ts';
import * as kinds from './kinds.ts';

/** Who asks, and whom. */
export interface Asked {
  readonly member: V3Member;
  readonly decode: Decode;
  /** The token in the request's headers. */
  readonly token: string | undefined;
}

export interface Call {
  /**
   * Answers a request by the JSON of its message.
   * @throws {EtcdV3Refusal} as etcd does
   */
  readonly answer: (message: Json, asked: Asked) => string;
  /** Whether it may change something. */
  readonly isWrite: boolean;
}

type Run<Q, A> = (request: Q, context: { readonly member: V3Member; readonly access: UserAccess }) => A;

/** Returns the user who asks. @throws {EtcdV3Refusal} if the call needs a user, and there is none */
type Identify = (asked: Pick<Asked, 'member' | 'token'>) => string | undefined;

const byToken: Identify = ({ member: { auth }, token }) => auth.userOf(token);

/** For calls that anyone may send: a token is not looked at. */
export const anyone: Identify = () => undefined;

/** For calls that need a user from etcd 3.5 on. */
export const byTokenSince35: Identify = (asked) => {
  const user = byToken(asked);
  if (asked.member.version !== '3.4') asked.member.auth.require(user);
  return user;
};

/** For calls that anyone may send to etcd 3.4, and that need a user from 3.5 on. */
export const anyoneUntil35: Identify = (asked) => (asked.member.version === '3.4' ? undefined : byTokenSince35(asked));

export const accessOf = (asked: Pick<Asked, 'member' | 'token'>, identify: Identify = byToken): UserAccess => {
  const { auth, store } = asked.member;
  return new UserAccess(auth, identify(asked), (lease) => store.leases.keysOf(lease));
};

interface CallOptions<Q> {
  readonly identify?: Identify;
  /** Checks a request by itself, before the token. @throws {EtcdV3Refusal} */
  readonly check?: (request: Q, member: V3Member) => void;
  /** Default false. */
  readonly isWrite?: boolean;
}

/** Makes a call from the kinds of its messages. */
export const call = <Q, A extends object>(
  request: Kind<Q>,
  response: Kind<A>,
  run: Run<Q, A>,
  { identify, check, isWrite = false }: CallOptions<Q> = {},
): Call => ({
  answer: (message, asked) => {
    const { member, decode } = asked;
    const decoded = decode(request, message);
    check?.(decoded, member);
    return encode(response, run(decoded, { member, access: accessOf(asked, identify) }));
  },
  isWrite,
});

/** As {@link call}, for one that may change something. */
export const write = <Q, A extends object>(
  request: Kind<Q>,
  response: Kind<A>,
  run: Run<Q, A>,
  options: Omit<CallOptions<Q>, 'isWrite'> = {},
): Call => call(request, response, run, { ...options, isWrite: true });

/** A call that changes users or roles, or lists them: only root may. */
export const admin = <Q, A extends object>(
  request: Kind<Q>,
  response: Kind<A>,
  run: (request: Q, member: V3Member) => A,
  make: typeof call = call,
): Call =>
  make(request, response, (asked, { member, access }) => {
    access.admin();
    return run(asked, member);
  });

/** As {@link admin}, for a call that changes something, and whose answer has only a header. */
export const change = <Q>(request: Kind<Q>, run: (request: Q, member: V3Member) => void): Call =>
  admin(
    request,
    kinds.ONLY_HEADER,
    (asked, member) => {
      run(asked, member);
      return { header: member.header };
    },
    write,
  );
