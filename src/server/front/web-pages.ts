/**
 * Refuses requests that a browser sends for a web page. A page may send a form to any address that its browser can reach,
 * and this server has no passwords. Other clients do not send the headers that identify a page.
 */
import type { IncomingHttpHeaders } from 'node:http';
import { isIP } from 'node:net';
import { show } from '../../checks.ts';

/** Requests of the server's own pages, or typed in by the user. `same-site` may be another port of the same machine. */
const OWN_SITES = ['same-origin', 'none'];

/**
 * Why a request may come from a web page; undefined when it does not.
 * @param ownHost the host the server was started with
 */
export function refusalOf(headers: IncomingHttpHeaders, ownHost: string): string | undefined {
  const { host = '', origin, 'sec-fetch-site': site = 'none' } = headers;
  // DNS rebinding: the page's own host name resolves to this machine, so the page is of the same origin as the server.
  if (!isAllowed(nameIn(host), ownHost))
    return `the server does not answer to the host ${show(host)}, but to localhost, an IP address and the host it was started with`;
  if (origin !== undefined && origin.replace(/^https?:\/\//, '') !== host.toLowerCase())
    return `a web page of ${show(origin)} may not use this server`;
  if (!OWN_SITES.includes(`${site}`)) return 'a web page of another site may not use this server';
  return undefined;
}

/** DNS rebinding needs a name, so any IP address is safe. HTTP/1.0 needs no host; browsers do not speak it. */
const isAllowed = (name: string, ownHost: string): boolean =>
  name === '' || name === 'localhost' || name === ownHost.toLowerCase() || isIP(name) !== 0;

/** Without the port and the brackets of an IPv6 address. */
const nameIn = (host: string): string =>
  host
    .toLowerCase()
    .replace(/:\d*$/, '')
    .replace(/^\[(.*)\]$/, '$1');
