import { isBridged } from '../../recipe/entries/bridged-value.ts';
import { isAlone } from '../../recipe/entries/entry-value.ts';
import { madeAt } from '../../recipe/entries/uuid.ts';
import { lastPart, type ParsedEntry } from '../../recipe/survey.ts';

/**
 * The program that added an entry, as far as the entry shows it. `python-etcd`: or the class `Lock` of this package, whose entries look
 * the same. `Go`: or another client that gives its entries no value, such as jetcd.
 */
export type ClientKind = 'this package' | 'python-etcd' | 'bridge' | 'Go' | 'unknown';

const RANDOM_UUID = /^[0-9a-f]{32}$/;
/** The number that a bridge on etcd v3 gives an entry, as etcd v2 does. */
const NUMBER = /^\d{20}$/;

/** @param api the store in which the entry is */
export function kindOf(entry: ParsedEntry, api: 'v2' | 'v3'): ClientKind {
  const { key, value, uuid, identity, label } = entry;
  if (isBridged(value) || (api === 'v3' && NUMBER.test(lastPart(key)))) return 'bridge';
  if (value === '') return api === 'v3' ? 'Go' : 'unknown';
  if (!isAlone(entry) || identity !== undefined || label !== undefined || madeAt(uuid)) return 'this package';
  return RANDOM_UUID.test(uuid) ? 'python-etcd' : 'unknown';
}
