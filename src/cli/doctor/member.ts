import { errorText } from '../../base/error-text.ts';
import { type Deadline, now } from '../../base/time.ts';
import { EtcdConnectionFailed, EtcdTlsFailed } from '../../errors.ts';
import { Endpoint } from '../../http/endpoint.ts';
import type { ClientSettings } from '../../v2/options.ts';
import type { InfoPath, WireAnswer, WireRequest } from '../../v2/wire.ts';
import { encodeInfo } from '../../v2/wire.ts';
import type { Unreachable } from './facts.ts';

/** An answer with the time at which it was complete, in milliseconds of the monotonic clock. */
export interface TimedAnswer extends WireAnswer {
  readonly answeredAt: number;
}

/** No answer in time, although the connection may be open. */
class Silent extends EtcdConnectionFailed {}

/** Client for one member, without failover and without retries. */
export class MemberClient {
  readonly #endpoint: Endpoint;
  readonly #settings: ClientSettings;

  constructor(url: string, settings: ClientSettings) {
    this.#endpoint = new Endpoint(url, settings);
    this.#settings = settings;
  }

  get url(): string {
    return this.#endpoint.url;
  }

  /** @throws {EtcdConnectionFailed} if there is no answer by the deadline, or no connection */
  async request(request: WireRequest, deadline: Deadline): Promise<TimedAnswer> {
    const options = { lane: 'call', timeout: deadline.remaining / 1000, ending: undefined } as const;
    const answer = await this.#endpoint.send(request, options);
    if (!answer) throw new Silent(`no answer within ${this.#settings.readTimeout} s`);
    return { ...answer, answeredAt: now() };
  }

  info(path: InfoPath, deadline: Deadline): Promise<TimedAnswer> {
    return this.request(encodeInfo(path), deadline);
  }

  destroy(): Promise<void> {
    return this.#endpoint.destroy();
  }
}

/** Returns why a member gave no answer. */
export function unreachable(error: unknown): Unreachable {
  return { reason: reasonOf(error), message: errorText(error) };
}

function reasonOf(error: unknown): Unreachable['reason'] {
  if (error instanceof EtcdTlsFailed) return 'tls';
  if (error instanceof Silent) return 'silent';
  const cause = error instanceof Error ? (error.cause as { code?: unknown; name?: unknown } | undefined) : undefined;
  if (cause?.name === 'HTTPParserError') return 'protocol';
  switch (cause?.code) {
    case 'ECONNREFUSED':
      return 'refused';
    case 'ENOTFOUND':
    case 'EAI_AGAIN':
      return 'name';
    case 'UND_ERR_CONNECT_TIMEOUT':
    case 'ETIMEDOUT':
      return 'silent';
    default:
      return 'other';
  }
}
