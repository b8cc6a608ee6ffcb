import type { Socket } from 'node:net';
import { describe } from '../tls/refusals.ts';
import { type Connector, requestTunnel } from '../transport.ts';
import { credentialsIn, portOf } from './proxies.ts';

/**
 * Opens a tunnel to a member by the method CONNECT. Not undici's `EnvHttpProxyAgent`: it opens the sockets by itself, and so could neither
 * use changed certificates, nor say why it does not trust one, nor let background work end with the process.
 * @param proxy its URL, with the credentials if it has some
 * @param member origin of the member
 * @param connect opens the socket to the proxy
 * @param timeout milliseconds to wait for its answer
 * @throws an error that names the proxy, without its credentials
 */
export async function openTunnel(proxy: string, member: string, connect: Connector, timeout: number): Promise<Socket> {
  const proxyUrl = new URL(proxy);
  const { origin } = proxyUrl;
  const url = new URL(member);
  const target = `${url.hostname}:${portOf(url)}`;
  const credentials = credentialsIn(proxyUrl);
  const authorization = `Basic ${Buffer.from(credentials).toString('base64')}`;
  const headers = { host: target, ...(credentials === ':' ? {} : { 'proxy-authorization': authorization }) };
  const failed = (why: string, cause?: unknown) =>
    new Error(`the proxy ${origin} opens no tunnel to ${target}: ${why}`, { cause });
  const { socket, status } = await requestTunnel(origin, target, { connect, headers, timeout }).catch((error) => {
    throw failed(describe(error), error);
  });
  if (status === 200) return socket;
  socket.destroy();
  throw failed(`it answered ${status}`);
}
