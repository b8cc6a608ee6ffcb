/** Encodes keys and values for etcd's JSON gateway, and decodes and checks the fields of its answers. */
import { EtcdUnusableAnswer } from '../../errors.ts';
import { textOf, toBytes } from '../../http/bytes.ts';
import type { WireAnswer } from '../../http/message.ts';

export type Json = Readonly<Record<string, unknown>>;

/** The header of an answer: the cluster that it is from, its revision, and the raft term of the member that has answered. */
export interface Header {
  readonly clusterId: string | undefined;
  /**
   * Revision of the store at the time of the answer. If the answer shows that the lock is held, the revision is greater than that
   * of every earlier hold that this one excludes.
   */
  readonly revision: bigint;
  /** Grows with each election. */
  readonly raftTerm: string | undefined;
}

/** Encodes a key or a value, also one that {@link decodeText} has decoded from bytes that are not UTF-8. */
export const encodeBytes = (text: string): string => toBytes(text).toString('base64');

const LEAST_INT64 = -(2n ** 63n);
const MOST_INT64 = 2n ** 63n - 1n;
const MOST_UINT64 = 2n ** 64n - 1n;

/** Reads the fields of one message. The gateway omits fields that are zero, false or empty, and never sends null. */
export class Fields {
  readonly #answer: WireAnswer;
  readonly #fields: Json;

  /** @throws {EtcdUnusableAnswer} if the value is no JSON object */
  constructor(answer: WireAnswer, value: unknown) {
    this.#answer = answer;
    if (typeof value !== 'object' || value === null || Array.isArray(value))
      throw unusable(answer, 'contains an invalid value (expected a JSON object)');
    this.#fields = value as Json;
  }

  has(name: string): boolean {
    return this.#fields[name] !== undefined;
  }

  /** Returns an int64, such as a revision, the id of a lease or a TTL. @throws {EtcdUnusableAnswer} if it is out of range */
  integer(name: string): bigint {
    return this.#whole(name, LEAST_INT64, MOST_INT64);
  }

  /** Returns a uint64: the id of a cluster or a member, or a raft term. @throws {EtcdUnusableAnswer} if it is out of range */
  unsigned(name: string): bigint {
    return this.#whole(name, 0n, MOST_UINT64);
  }

  /** Returns an integer that etcd always sends, such as a revision. @throws {EtcdUnusableAnswer} unless it is greater than 0 */
  positive(name: string): bigint {
    const value = this.integer(name);
    if (value > 0n) return value;
    throw this.#wrong(name, 'an integer greater than 0');
  }

  /** The gateway sends 64-bit integers as strings of digits, because JSON numbers are not exact beyond 2^53. */
  #whole(name: string, least: bigint, most: bigint): bigint {
    const value = this.#value(name, '0');
    const isText = typeof value === 'string' && /^-?\d{1,20}$/.test(value);
    if (!isText && !Number.isSafeInteger(value)) throw this.#wrong(name, 'an integer');
    const whole = BigInt(value as string | number);
    if (least <= whole && whole <= most) return whole;
    throw this.#wrong(name, `an integer from ${least} to ${most}`);
  }

  text(name: string): string {
    const value = this.#value(name, '');
    if (typeof value === 'string') return value;
    throw this.#wrong(name, 'a string');
  }

  flag(name: string): boolean {
    const value = this.#value(name, false);
    if (typeof value === 'boolean') return value;
    throw this.#wrong(name, 'a boolean');
  }

  /** Returns bytes, still in base64. */
  raw(name: string): string {
    const text = this.text(name);
    if (text.length % 4 === 0 && /^[\w+/-]*={0,2}$/.test(text)) return text;
    throw this.#wrong(name, 'base64');
  }

  list(name: string): Fields[] {
    const value = this.#value(name, []);
    if (!Array.isArray(value)) throw this.#wrong(name, 'a list');
    return value.map((one) => new Fields(this.#answer, one));
  }

  texts(name: string): string[] {
    const value = this.#fields[name] ?? [];
    if (Array.isArray(value) && value.every((text) => typeof text === 'string')) return value;
    throw this.#wrong(name, 'a list of strings');
  }

  /** Returns the message in this field; undefined if the field is omitted. */
  optional(name: string): Fields | undefined {
    return this.has(name) ? new Fields(this.#answer, this.#fields[name]) : undefined;
  }

  /** Returns the message in this field. @throws {EtcdUnusableAnswer} if the field is omitted */
  message(name: string): Fields {
    const found = this.optional(name);
    if (found) return found;
    throw this.#wrong(name, 'a message');
  }

  #value(name: string, left: unknown): unknown {
    return this.has(name) ? this.#fields[name] : left;
  }

  #wrong(name: string, expected: string): EtcdUnusableAnswer {
    return unusable(this.#answer, `has no valid field ${name} (${expected})`);
  }
}

export const decodeText = (base64: string): string => textOf(Buffer.from(base64, 'base64'));

export function decodeHeader(fields: Fields): Header {
  const header = fields.message('header');
  const clusterId = header.unsigned('cluster_id');
  return {
    clusterId: clusterId === 0n ? undefined : clusterId.toString(16),
    revision: header.positive('revision'),
    raftTerm: header.has('raft_term') ? String(header.unsigned('raft_term')) : undefined,
  };
}

/** Returns the error for an answer that cannot be used. */
export function unusable({ status, body }: WireAnswer, why: string): EtcdUnusableAnswer {
  const text = body.replace(/\s+/g, ' ').trim().slice(0, 200);
  return new EtcdUnusableAnswer(`the answer ${why}: ${status} ${text === '' ? '(empty)' : text}`, {
    httpStatus: status,
    outcomeUnknown: status < 300 || status >= 500,
  });
}
