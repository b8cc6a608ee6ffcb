import { show } from '../../base/checks.ts';
import type { EtcdApi } from '../../client.ts';
import { UsageError } from '../exit-codes.ts';

/** A hold that no process renews, as `acquire` prints it and other commands find it again. Contains no secret. */
export interface Handle {
  readonly api: EtcdApi;
  /** TTL in seconds, which a renewal sets again. */
  readonly ttl: number;
  readonly fencingToken: bigint;
  readonly clusterId: string;
  readonly uuid: string;
  readonly lockPrefix: string;
  /** Name of the lock. */
  readonly name: string;
  /** Last part of the key; with `both`, of the key on v2. The entry on v3 has the same uuid. */
  readonly id: string;
}

const FORM = /^(v2|v3|both):([1-9]\d*):(\d+):([0-9a-f]+):([0-9a-f]{32}):([^:]*):([^:]+):([^:/]+)$/;

/** Returns the handle as one word, which no shell changes. */
export function formatHandle({ api, ttl, fencingToken, clusterId, uuid, lockPrefix, name, id }: Handle): string {
  return [api, ttl, fencingToken, clusterId, uuid, ...[lockPrefix, name, id].map(encoded)].join(':');
}

/** @throws {UsageError} unless the text is a handle; the message shows it */
export function parseHandle(text: string): Handle {
  const [, api, ttl = '', token = '', clusterId = '', uuid = '', ...rest] = FORM.exec(text.trim()) ?? [];
  try {
    if (api === undefined) throw new URIError();
    const [lockPrefix = '', name = '', id = ''] = rest.map(decodeURIComponent);
    const handle = { api: api as EtcdApi, ttl: Number(ttl), fencingToken: BigInt(token), clusterId };
    return { ...handle, uuid, lockPrefix, name, id };
  } catch {
    throw new UsageError(`--handle must be a handle that "acquire" has printed, got ${show(text)}`);
  }
}

/** Encodes what has a meaning in URLs or in shells. */
const encoded = (text: string): string =>
  encodeURIComponent(text)
    .replaceAll('%2F', '/')
    .replace(/[!'()*~]/g, (character) => `%${character.charCodeAt(0).toString(16).toUpperCase()}`);
