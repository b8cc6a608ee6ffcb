import { Deadline } from '../../../time.ts';
import type { ClientSettings } from '../../../v2/options.ts';
import type { EndpointFacts } from '../facts.ts';
import { READ_TIMEOUT } from '../limits.ts';
import { MemberClient, unreachable } from '../member.ts';
import { asError } from '../outcomes.ts';
import { readGateway } from './gateway.ts';

/** Maximum number of URLs to check: the list comes from a server. */
const URLS = 20;

/**
 * Returns the client URLs of members at which a server answers without a gateway. Leaves out the endpoints.
 * @param settings must have no credentials: servers have chosen the URLs
 */
export async function findWithoutGateway(
  endpoints: readonly EndpointFacts[],
  settings: ClientSettings,
): Promise<string[]> {
  const known = new Set(endpoints.map(({ endpoint }) => endpoint));
  const listed = endpoints.flatMap(({ members = [] }) => members.flatMap(({ clientURLs }) => clientURLs));
  const urls = [...new Set(listed)].filter((url) => isHttp(url) && !known.has(new URL(url).origin)).slice(0, URLS);
  const lacking = await Promise.all(urls.map((url) => lacksGateway(new URL(url).origin, settings)));
  return urls.filter((_, at) => lacking[at]);
}

async function lacksGateway(origin: string, settings: ClientSettings): Promise<boolean> {
  const member = new MemberClient(origin, settings);
  try {
    const deadline = Deadline.after(READ_TIMEOUT);
    const version = await member.info('/version', deadline).catch(asError);
    // A port for gRPC alone does not speak HTTP/1.1.
    if (version instanceof Error) return unreachable(version).reason === 'protocol';
    return (await readGateway(member, version, deadline)).v3?.on === false;
  } finally {
    await member.destroy();
  }
}

const isHttp = (url: string): boolean => URL.canParse(url) && /^https?:$/.test(new URL(url).protocol);
