import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { cache } from '../../scripts/peers/cache.mjs';

/** The versions of etcd that `npm run peers` builds. */
export type BuiltVersion = '3.5' | '3.6';

/** Returns the path of a server. @throws {Error} if it has not been built */
export function built(version: BuiltVersion): string {
  const program = join(cache, `etcd-${version}/etcd`);
  if (!existsSync(program)) throw new Error(`${program} not found: it is built by npm run peers`);
  return program;
}
