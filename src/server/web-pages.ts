/**
 * Keeps web pages out. A browser sends their requests to any server it can reach, with a form to any address, and this
 * server has no passwords. What is no browser sends none of the headers that betray a page.
 */
import type { IncomingHttpHeaders } from 'node:http';
import { isIP } from 'node:net';
import { show } from '../keys/checks.ts';

/** Of the server's own pages, or typed in. `same-site` is another port of the same machine. */
const OWN_SITES = ['same-origin', 'none'];

/**
 * Why a request may come from a web page; undefined when it does not.
 * @param ownHost the host the server was started with
 */
export function refusalOf(headers: IncomingHttpHeaders, ownHost: string): string | undefined {
  const { host = '', origin, 'sec-fetch-site': site = 'none' } = headers;
  // A page whose name is made to resolve to this machine has that name for its origin, so that all else looks right.
  if (!isAllowed(nameIn(host), ownHost))
    return `the server does not answer to the host ${show(host)}, but to localhost, an IP address and the host it was started with`;
  if (origin !== undefined && origin.replace(/^https?:\/\//, '') !== host.toLowerCase())
    return `a web page of ${show(origin)} may not use this server`;
  if (!OWN_SITES.includes(`${site}`)) return 'a web page of another site may not use this server';
  return undefined;
}

/** No page can have an IP address resolve to another machine. HTTP/1.0, which browsers do not speak, needs no host. */
const isAllowed = (name: string, ownHost: string): boolean =>
  name === '' || name === 'localhost' || name === ownHost.toLowerCase() || isIP(name) !== 0;

/** Without the port and the brackets of an IPv6 address. */
const nameIn = (host: string): string =>
  host
    .toLowerCase()
    .replace(/:\d*$/, '')
    .replace(/^\[(.*)\]$/, '$1');
