import type { SrvRecord } from 'node:dns';
import { errorText } from '../../base/error-text.ts';
import { EtcdConnectionFailed } from '../../errors.ts';
import type { HttpSettings } from '../options.ts';
import { drawnByWeight } from './order.ts';

/** Which SRV records to look up. With TLS settings, members are asked by TLS only. */
export type SrvSettings = Pick<HttpSettings, 'srvDomain' | 'srvName' | 'tls'>;

type ResolveSrv = (name: string) => Promise<SrvRecord[]>;

/** Errors of a look-up that found no records of this name. */
const ABSENT: readonly unknown[] = ['ENOTFOUND', 'ENODATA'];

/**
 * Returns the names of the records, in the order of the look-ups, each with the scheme of its members. First come the names that
 * etcdctl looks up, then that of python-etcd, which leaves the scheme open.
 */
function recordNames({ srvDomain, srvName, tls }: SrvSettings): readonly (readonly [name: string, scheme: string])[] {
  const suffix = srvName === undefined ? '' : `-${srvName}`;
  const usesTls = Object.keys(tls).length > 0;
  const secure = [`_etcd-client-ssl${suffix}._tcp.${srvDomain}`, 'https'] as const;
  const plain = [`_etcd-client${suffix}._tcp.${srvDomain}`, 'http'] as const;
  const python = [`_etcd._tcp.${srvDomain}`, usesTls ? 'https' : 'http'] as const;
  return [secure, ...(usesTls ? [] : [plain]), ...(srvName === undefined ? [python] : [])];
}

/**
 * Looks up the members in DNS. Returns their origins: the records of the first name with records, in the order of their priorities.
 * Records of one priority are in random order, heavier ones more often first.
 * @throws {EtcdConnectionFailed} if a lookup fails, or no name has records
 */
export async function discover(
  settings: SrvSettings,
  resolve: ResolveSrv,
  random: () => number = Math.random,
): Promise<readonly string[]> {
  const names = recordNames(settings);
  let cause: unknown;
  for (const [name, scheme] of names) {
    const records = await resolve(name).catch((error: unknown) => {
      // Do not go on to a name without TLS because of an error that may be temporary.
      if (!ABSENT.includes((error as NodeJS.ErrnoException | undefined)?.code))
        throw new EtcdConnectionFailed(`SRV lookup of ${name} failed: ${errorText(error)}`, { cause: error });
      cause = error;
      return [];
    });
    const urls = drawnByWeight(records, random).map(({ name: host, port }) => `${scheme}://${host}:${port}`);
    // A record without a host says that there is no such service.
    const usable = urls.filter((url) => URL.canParse(url));
    if (usable.length > 0) return usable.map((url) => new URL(url).origin);
  }
  const all = names.map(([name]) => name).join(', ');
  throw new EtcdConnectionFailed(`SRV lookup found no records of ${all}`, { cause });
}
