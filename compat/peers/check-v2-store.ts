import { spawnSync } from 'node:child_process';
import { builtEtcdutl } from './built.ts';

/** What `etcdutl check v2store` of etcd 3.5 prints about the data of a stopped member if etcd 3.6 can be started on it. */
export const NOTHING_FOUND = 'No custom content found in both v2store and WAL records.';

/** Runs `etcdutl check v2store`. Returns what it prints, without its log. */
export function checkV2Store(dataDir: string): string {
  const { stdout, stderr } = spawnSync(builtEtcdutl(), ['check', 'v2store', '--data-dir', dataDir], {
    encoding: 'utf8',
  });
  return `${stdout}${stderr}`
    .split('\n')
    .filter((line) => line !== '' && !line.startsWith('{'))
    .join('\n');
}
