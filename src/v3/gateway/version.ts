import { show } from '../../base/checks.ts';
import { EtcdConnectionFailed, EtcdUnusableAnswer } from '../../errors.ts';
import type { WireAnswer, WireRequest } from '../../http/message.ts';
import { isTroubleOfProxy } from './errors.ts';
import { Fields, unusable } from './messages.ts';

/** Asks a member for its version. Needs no token, and is answered without the gateway, too. */
export const VERSION: WireRequest = { method: 'GET', path: '/version', query: '' };

/**
 * Returns the path prefix of the member's JSON gateway.
 * @throws {EtcdUnusableAnswer} for a server before etcd 3.3. A renewal of many entries needs nested transactions: etcd 3.2 refuses
 * them, and etcd 3.1 crashes
 */
export function gatewayPrefix(answer: WireAnswer): string {
  const { status } = answer;
  if (isTroubleOfProxy(status))
    throw new EtcdConnectionFailed(`answered ${status} to GET /version`, { httpStatus: status });
  let version: string;
  try {
    version = new Fields(answer, JSON.parse(answer.body)).text('etcdserver');
  } catch {
    throw unusable(answer, 'to GET /version is not from etcd');
  }
  const [, major = '', minor = ''] = /^(\d+)\.(\d+)\./.exec(version) ?? [];
  if (major === '') throw unusable(answer, 'to GET /version names no version');
  if (Number(major) > 3 || (Number(major) === 3 && Number(minor) >= 4)) return '/v3';
  if (major === '3' && minor === '3') return '/v3beta';
  throw new EtcdUnusableAnswer(`etcd ${show(version)} is too old: api "v3" needs etcd 3.3 or later`);
}
