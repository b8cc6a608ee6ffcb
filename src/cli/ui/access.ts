/** Who may use the page: no other site, and elsewhere than on this machine only clients with the token or a certificate. */
import { createHash, createHmac, timingSafeEqual } from 'node:crypto';
import type { IncomingMessage } from 'node:http';
import { isIP } from 'node:net';
import { refusalOf } from '../../server/front/web-pages.ts';

/** Name of the cookie that a browser gets for the token. */
const COOKIE = 'etcd-v2-lock-ui';
const JSON_TYPE = /^application\/json *(?:;|$)/i;
const BEARER = /^Bearer +([^ ]+)$/i;

/** Whether only this machine can connect to an address. */
export const isLoopback = (host: string): boolean =>
  host === 'localhost' || host === '::1' || (isIP(host) === 4 && host.startsWith('127.'));

/** Characters that need no escape in a header and in a URL, but for "+". */
const TOKEN = /^[\w.~+/=-]{16,200}$/;

/** @throws {RangeError} if the token is invalid; the message does not show it */
export function checkToken(token: string): void {
  if (!TOKEN.test(token))
    throw new RangeError(
      `the token must have 16 to 200 characters out of letters, digits and "-._~+/=", got ${token.length} characters`,
    );
}

/** Whether the texts are equal. Takes the same time wherever they differ. */
const isEqual = (one: string, other: string): boolean => timingSafeEqual(digest(one), digest(other));

const digest = (text: string): Buffer => createHash('sha256').update(text).digest();

export interface AccessOptions {
  /** The host that the server listens on. */
  readonly host: string;
  /** undefined: clients need none. */
  readonly token?: string | undefined;
  /** Whether the server uses HTTPS. */
  readonly isSecure: boolean;
}

export class Access {
  readonly #hosts: readonly string[];
  readonly #token: string | undefined;
  /** Not the token itself: browsers send cookies to all ports of a host. */
  readonly #cookie: string;
  readonly #isSecure: boolean;

  constructor({ host, token, isSecure }: AccessOptions) {
    this.#hosts = [host];
    this.#token = token;
    this.#cookie = createHmac('sha256', token ?? '')
      .update(COOKIE)
      .digest('hex');
    this.#isSecure = isSecure;
  }

  /**
   * Returns why a request is refused because another site may have sent it; undefined if it is allowed.
   * @param isPage whether the answer has no data, and can be opened by a link on any site
   */
  refusal({ headers }: IncomingMessage, isPage: boolean): string | undefined {
    const isLink = isPage && headers['sec-fetch-mode'] === 'navigate' && headers['sec-fetch-dest'] === 'document';
    return refusalOf(isLink ? { ...headers, 'sec-fetch-site': 'none' } : headers, this.#hosts);
  }

  /**
   * Returns why a request that changes something is refused; undefined if it is allowed. A form of another site cannot have this type, and
   * each browser says from where a POST is.
   */
  refusalOfChange({ headers }: IncomingMessage): string | undefined {
    const { origin, 'content-type': type = '', 'sec-fetch-site': site } = headers;
    if (!JSON_TYPE.test(type)) return 'the body must be JSON: send "Content-Type: application/json"';
    // A foreign origin has been refused already.
    if (origin === undefined && site !== 'same-origin')
      return 'this request must come from the page itself: send "Origin" with the URL of the page';
    return undefined;
  }

  /** Whether the client has the token, if one is needed. */
  isKnown({ headers: { authorization = '', cookie = '' } }: IncomingMessage): boolean {
    if (this.#token === undefined) return true;
    const [, bearer] = BEARER.exec(authorization) ?? [];
    if (bearer !== undefined) return isEqual(bearer, this.#token);
    const cookies = cookie.split(/; */).filter((each) => each.startsWith(`${COOKIE}=`));
    return cookies.some((each) => isEqual(each.slice(COOKIE.length + 1), this.#cookie));
  }

  /** Returns the cookie for a browser whose user has opened a URL with the token; undefined if it is another token. */
  cookieFor(token: string): string | undefined {
    // In a query, "+" is a space.
    if (this.#token === undefined || !isEqual(token.replaceAll(' ', '+'), this.#token)) return undefined;
    // Not Strict: who follows a link from another site would have to give the token again. Other sites cannot send it with a POST.
    return `${COOKIE}=${this.#cookie}; Path=/; HttpOnly; SameSite=Lax${this.#isSecure ? '; Secure' : ''}`;
  }
}
