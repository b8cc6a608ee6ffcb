/** Findings on who can read and write the locks. */
import type { StoreApi } from '../../../client.ts';
import { showUser } from '../../../http/checks/credentials.ts';
import type { EndpointFacts, Finding } from '../facts.ts';
import type { Context } from './context.ts';
import { CHECK_HEALTH, type MakeFinding } from './finding.ts';

/** Advice for a database that has reached its quota. */
const FREE_SPACE = 'compact and defragment the database, or raise --quota-backend-bytes; then run etcdctl alarm disarm';

const ANONYMOUS = 'unauthenticated clients';

/** Returns findings on read and write access; locks need both. Without a quorum, neither can be checked. */
export function access(member: EndpointFacts, context: Context, finding: MakeFinding): Finding[] {
  const { auth, read, write } = member;
  const { facts, api, anyUsable } = context;
  const { user, lockPrefix } = facts;
  const place = lockPrefix === '' ? 'in the whole store' : `below ${lockPrefix}`;
  const refused = [read?.is === 'refused' && 'read', write?.is === 'refused' && 'write'].filter((what) => what);
  if (refused.length > 0) {
    const who = user === undefined ? ANONYMOUS : `user ${showUser(user)}`;
    const advice =
      user === undefined
        ? 'use --user, with the password in ETCDCTL_PASSWORD or --password-file'
        : `check the password, and that the roles of the user grant ${grantFor(lockPrefix, api)}`;
    const text = `permission denied: ${who} cannot ${refused.join(' or ')} ${place}`;
    return [finding('fail', 'access', text, advice)];
  }
  if (read?.is === 'failed') return [];
  if (write?.is === 'failed') {
    const text = `reads succeed, but writes fail: ${write.message}`;
    const advice = /space exceeded/.test(write.message) ? FREE_SPACE : CHECK_HEALTH;
    return [finding(anyUsable ? 'warn' : 'fail', 'access', text, advice)];
  }
  if (auth === false && user !== undefined) {
    const text = `auth is off: user ${showUser(user)} is not checked, and everyone has access`;
    return [finding('warn', 'access', text, 'enable auth if access must be restricted')];
  }
  const everyone = auth ? ANONYMOUS : 'everyone';
  const who = user === undefined ? everyone : `user ${showUser(user)}`;
  const state = auth === undefined ? '' : `auth is ${auth ? 'on' : 'off'}: `;
  return [finding('ok', 'access', `${state}${who} can read and write ${place}`)];
}

function grantFor(lockPrefix: string, api: StoreApi): string {
  if (api === 'v2') return `read and write access to ${lockPrefix}/*`;
  if (lockPrefix === '')
    return 'readwrite access to all keys; or use --lock-prefix with a prefix that they grant access to';
  return `readwrite access to the prefix ${lockPrefix}/`;
}

/** Returns a warning if clients without credentials have access although auth is on. */
export function guest({ guest: can }: EndpointFacts, { facts }: Context, finding: MakeFinding): Finding[] {
  const operations = [can?.read && 'read', can?.write && 'write'].filter((word) => word).join(' and ');
  if (operations === '') return [];
  const text = `${ANONYMOUS} can also ${operations} below ${facts.lockPrefix}`;
  return [finding('warn', 'guest', text, 'revoke these permissions from the role guest, unless they are intended')];
}
