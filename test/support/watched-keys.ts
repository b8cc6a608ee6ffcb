import type { EtcdProxy, ProxiedRequest } from './proxy.ts';
import { until } from './until.ts';

export const isWatch = ({ path }: ProxiedRequest): boolean => path.endsWith('/watch');

/** The keys that etcd v3 has been asked to watch, through the proxy, in streams that are open. */
export const watchedBy = (proxy: EtcdProxy): string[] =>
  [...proxy.open].filter(isWatch).flatMap(({ body }) =>
    body.split('\n').map((line) => {
      const { create_request } = JSON.parse(line) as { create_request: { key: string } };
      return Buffer.from(create_request.key, 'base64').toString();
    }),
  );

/** Waits until all of these keys are watched. */
export const untilWatched = (proxy: EtcdProxy, ...keys: string[]): Promise<unknown> =>
  until(
    () => watchedBy(proxy),
    (watched) => keys.every((key) => watched.includes(key)),
  );
