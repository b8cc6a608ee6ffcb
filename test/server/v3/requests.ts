/** Requests to a store in memory. Fields that are left out are zero. */
import { systemClock } from '../../../src/base/time.ts';
import type * as api from '../../../src/server/v3/messages.ts';
import { V3Store, type V3StoreOptions } from '../../../src/server/v3/store/store.ts';

/** Returns a store with the options of the embedded server, but for some. */
export const newStore = (options: Partial<V3StoreOptions> = {}): V3Store =>
  new V3Store({ clock: systemClock, history: 10_000, version: '3.4', ...options });

export const put = (request: Partial<api.PutRequest>): api.PutRequest => ({
  key: '',
  value: '',
  lease: 0n,
  prev_kv: false,
  ignore_value: false,
  ignore_lease: false,
  ...request,
});

export const range = (request: Partial<api.RangeRequest>): api.RangeRequest => ({
  key: '',
  range_end: '',
  limit: 0n,
  revision: 0n,
  sort_order: 0,
  sort_target: 0,
  serializable: false,
  keys_only: false,
  count_only: false,
  min_mod_revision: 0n,
  max_mod_revision: 0n,
  min_create_revision: 0n,
  max_create_revision: 0n,
  ...request,
});

export const deletion = (request: Partial<api.DeleteRangeRequest>): api.DeleteRangeRequest => ({
  key: '',
  range_end: '',
  prev_kv: false,
  ...request,
});

/** A request for all keys. */
export const ALL = { key: '\0', range_end: '\0' };
