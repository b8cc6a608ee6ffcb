/**
 * Refuses requests that a browser sends for a web page. A page can send a form to any address that its browser can reach, and
 * requests without a password have the server's own rights. Other clients do not send the headers that identify a page.
 */
import type { IncomingHttpHeaders } from 'node:http';
import { isIP } from 'node:net';
import { show } from '../../base/checks.ts';

/**
 * Allowed values of `Sec-Fetch-Site`: the server's own pages, and addresses typed in by the user. Not `same-site`: that may be
 * another port of the same machine.
 */
const OWN_SITES = ['same-origin', 'none'];

/**
 * Returns why a request is refused because a web page may have sent it. Returns undefined for an allowed request.
 * @param ownHosts the host that the server was started with, and its other host names
 */
export function refusalOf(headers: IncomingHttpHeaders, ownHosts: readonly string[]): string | undefined {
  const { host = '', origin, 'sec-fetch-site': site = 'none' } = headers;
  // DNS rebinding: a page's own host name resolves to this machine, so that the page has the same origin as the server.
  if (!isAllowed(nameIn(host), ownHosts))
    return `host ${show(host)} is not allowed; use an IP address, localhost, or a host name that the server knows`;
  if (origin !== undefined && origin.replace(/^https?:\/\//, '') !== host.toLowerCase())
    return `web pages may not use this server, but the request has the origin ${show(origin)}`;
  if (!OWN_SITES.includes(`${site}`))
    return `web pages may not use this server, but the request has Sec-Fetch-Site ${show(`${site}`)}`;
  return undefined;
}

/** DNS rebinding needs a name, so every IP address is safe. `Host` is absent only in HTTP/1.0, which browsers do not use. */
const isAllowed = (name: string, ownHosts: readonly string[]): boolean =>
  name === '' || name === 'localhost' || ownHosts.some((host) => name === host.toLowerCase()) || isIP(name) !== 0;

/** Returns the host in a `Host` header, in lower case, without port and without the brackets of an IPv6 address. */
const nameIn = (host: string): string =>
  host
    .toLowerCase()
    .replace(/:\d*$/, '')
    .replace(/^\[(.*)\]$/, '$1');
