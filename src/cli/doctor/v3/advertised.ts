import { Deadline } from '../../../base/time.ts';
import type { ClientSettings } from '../../../v2/options.ts';
import type { MemberInfo, Version } from '../../../v2/wire.ts';
import { READ_TIMEOUT } from '../limits.ts';
import { MemberClient, unreachable } from '../member.ts';
import { asError } from '../outcomes.ts';
import { versionOf } from '../version.ts';
import { readGateway } from './gateway.ts';

/** Maximum number of URLs to ask: the list comes from a server. */
const URLS = 20;

/** What one server reports about itself, and which members it knows. No request for this is a write, on v2 or v3. */
export interface Server {
  readonly url: string;
  readonly version: Version | undefined;
  /** Whether it answers without a gateway. False if it does not answer. */
  readonly lacksGateway: boolean;
  readonly members: readonly MemberInfo[];
}

/** A server that was asked already, with the members that it knows. */
export interface Known {
  readonly url: string;
  readonly members: readonly MemberInfo[];
}

/**
 * Asks the client URLs of all members, without those of the servers that are known.
 * @param settings must have no credentials: servers have chosen the URLs
 */
export function readAdvertised(known: readonly Known[], settings: ClientSettings): Promise<Server[]> {
  const asked = new Set(known.map(({ url }) => url));
  const listed = known.flatMap(({ members }) => members.flatMap(({ clientURLs }) => clientURLs));
  const origins = new Set(listed.filter(isHttp).map((url) => new URL(url).origin));
  const urls = [...origins].filter((url) => !asked.has(url)).slice(0, URLS);
  return Promise.all(urls.map((url) => readServer(url, settings)));
}

/** Asks each of these URLs, and then those that the members advertise. */
export async function readServers(urls: readonly string[], settings: ClientSettings): Promise<Server[]> {
  const servers = await Promise.all(urls.map((url) => readServer(url, settings)));
  return [...servers, ...(await readAdvertised(servers, settings))];
}

async function readServer(url: string, settings: ClientSettings): Promise<Server> {
  const member = new MemberClient(url, settings);
  try {
    const deadline = Deadline.after(READ_TIMEOUT);
    const version = await member.info('/version', deadline).catch(asError);
    if (version instanceof Error) {
      // A port for gRPC alone does not speak HTTP/1.1.
      return { url, version: undefined, lacksGateway: unreachable(version).reason === 'protocol', members: [] };
    }
    const { v3, members = [] } = await readGateway(member, version, deadline);
    return { url, version: versionOf(version), lacksGateway: v3?.on === false, members };
  } finally {
    await member.destroy();
  }
}

const isHttp = (url: string): boolean => URL.canParse(url) && /^https?:$/.test(new URL(url).protocol);
