import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { cache } from '../../scripts/peers/cache.mjs';

/** The versions of etcd that `npm run peers` builds. */
export type BuiltVersion = '3.5' | '3.6';

/** Returns the path of a server. @throws {Error} if it has not been built */
export const built = (version: BuiltVersion): string => programAt(`etcd-${version}/etcd`);

/** Returns the path of `etcdutl` of etcd 3.5. @throws {Error} if it has not been built */
export const builtEtcdutl = (): string => programAt('etcd-3.5/etcdutl');

function programAt(path: string): string {
  const program = join(cache, path);
  if (!existsSync(program)) throw new Error(`${program} not found: it is built by npm run peers`);
  return program;
}
