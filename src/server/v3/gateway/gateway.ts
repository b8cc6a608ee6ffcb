import type { WireReply } from '../../../v2/wire.ts';
import type { Limit } from '../../front/body.ts';
import type { Gateway, GatewayRequest, SingleAnswer, Stream } from '../../front/gateway.ts';
import { OutOfMemory } from '../../served-keys.ts';
import * as errors from '../errors.ts';
import type { V3Member } from '../member.ts';
import * as answers from './answers.ts';
import type { Call } from './call.ts';
import { AUTH_STATUS, CALLS } from './calls.ts';
import { type Decode, decoderOf } from './decode.ts';
import { keepAlive } from './keep-alive.ts';
import { requestIn } from './requests.ts';
import { watch } from './watch.ts';

const PREFIX = /^\/v3(?:beta)?(?=\/)/;

const KEEP_ALIVE = '/lease/keepalive';
const WATCH = '/watch';
const TRANSACTION = '/kv/txn';

/** Maximum size of a body in bytes. etcd refuses messages of more than 1.5 MiB; as JSON, these have 2 MiB. */
const BODY_LIMIT: Limit = { longest: 2.5 * 2 ** 20, tooLong: errors.bodyTooLong };

/** The HTTP/JSON gateway of etcd v3 over a member in memory. */
export class V3Gateway implements Gateway {
  readonly bodyLimit = BODY_LIMIT;
  readonly root = '/v3';
  readonly #member: V3Member;
  readonly #calls: ReadonlyMap<string, Call>;
  readonly #decode: Decode;

  constructor(member: V3Member) {
    this.#member = member;
    this.#calls = member.version === '3.4' ? CALLS : new Map([...CALLS, ['/auth/status', AUTH_STATUS]]);
    this.#decode = decoderOf(member.version);
  }

  serves(path: string): boolean {
    return PREFIX.test(path);
  }

  async answer({ method, path, headers, body }: GatewayRequest): Promise<SingleAnswer | Stream> {
    const name = path.replace(PREFIX, '');
    const call = this.#calls.get(name);
    const isStream = name === KEEP_ALIVE || name === WATCH;
    const { version } = this.#member;
    if (!call && !isStream) return unchanged(answers.unknownCall(version));
    if (method !== 'POST') return unchanged(answers.notPost(version));
    const { authorization, 'grpc-metadata-token': other } = headers;
    const asked = { member: this.#member, decode: this.#decode, token: authorization ?? other?.toString() };
    try {
      const text = Buffer.from(await body, 'latin1').toString();
      if (name === WATCH) return watch(text, asked);
      if (!call) return run(true, () => keepAlive(text, asked));
      const before = this.#member.store.revision;
      const answer = run(call.isWrite, () => answers.success(call.answer(requestIn(text), asked)));
      // A transaction may only read.
      const isUnchanged = name === TRANSACTION && this.#member.store.revision === before;
      return isUnchanged ? { ...answer, isWrite: false } : answer;
    } catch (error) {
      if (error instanceof errors.EtcdV3Refusal) return unchanged(answers.failure(error, version));
      throw error;
    }
  }

  overloaded(why: string): WireReply {
    return answers.failure(errors.overloaded(why), this.#member.version);
  }
}

/** Carries out a call. Its answer may then be too long. @throws {EtcdV3Refusal} */
function run(isWrite: boolean, call: () => WireReply): SingleAnswer {
  try {
    return { reply: call(), isWrite };
  } catch (error) {
    if (!(error instanceof OutOfMemory)) throw error;
    return { reply: undefined, isWrite };
  }
}

const unchanged = (reply: WireReply): SingleAnswer => ({ reply, isWrite: false });
