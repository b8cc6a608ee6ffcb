import type { IncomingMessage } from 'node:http';
import type { WireReply } from '../../v2/wire.ts';
import * as replies from './replies.ts';

/**
 * Returns the answer to a request with headers that Node's parser accepts and etcd refuses. Others between the client and this
 * server may understand such a request in another way. Returns undefined for an allowed request.
 */
export function refusalOfHeaders({ httpVersion, headers, rawHeaders }: IncomingMessage): WireReply | undefined {
  const values = (name: string): string[] =>
    rawHeaders.filter((_, i) => i % 2 === 1 && rawHeaders[i - 1]?.toLowerCase() === name);
  const encoding = headers['transfer-encoding'];
  // etcd carries out a request in HTTP/1.0 without its chunks.
  if (encoding !== undefined && httpVersion === '1.0') return replies.malformed;
  if (encoding !== undefined && encoding.toLowerCase() !== 'chunked') return replies.unknownEncoding;
  if (values('host').length > 1) return replies.malformed;
  if (headers.host === undefined && httpVersion === '1.1') return replies.noHost;
  if (headers.expect && httpVersion === '1.1' && !/(?:^|\W)100-continue(?:$|\W)/i.test(headers.expect))
    return replies.unexpected;
  return undefined;
}
