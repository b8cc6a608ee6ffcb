import { parseObject } from '../../v2/wire/json.ts';
import type { TimedAnswer } from './member.ts';

/** Reads the answer to `GET /health`, which all versions of etcd have, whatever their APIs. */
export function healthOf(answer: TimedAnswer | Error): boolean | undefined {
  const health = answer instanceof Error ? undefined : parseObject(answer.body)?.['health'];
  // etcd sends a string; a boolean is accepted, too.
  if (typeof health === 'string') return health === 'true';
  return typeof health === 'boolean' ? health : undefined;
}
