import type { Deadline } from '../../../base/time.ts';
import { EtcdInsufficientPermissions } from '../../../errors.ts';
import { type Access, hasCredentials, withClient, withoutCredentials } from '../access.ts';
import { readQueues } from './queues.ts';

/**
 * Returns the names of the locks in the v3 store; undefined if it cannot be read. The credentials are those for etcd v2, so they
 * are used only if etcd v3 requires credentials.
 */
export async function namesOnV3(
  url: string,
  access: Access,
  deadline: Deadline,
): Promise<readonly string[] | undefined> {
  const read = (as: Access) => withClient(as, url, (client) => readQueues(client, deadline));
  try {
    const { names } = await read(withoutCredentials(access)).catch((error: unknown) => {
      if (!(error instanceof EtcdInsufficientPermissions) || !hasCredentials(access)) throw error;
      return read(access);
    });
    return names;
  } catch {
    return undefined;
  }
}
