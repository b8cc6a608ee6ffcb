import type { Source } from '../../base/cancellation.ts';
import { now } from '../../base/time.ts';
import {
  EtcdCompareFailed,
  EtcdConnectionFailed,
  EtcdDirNotEmpty,
  EtcdEventIndexCleared,
  EtcdKeyNotFound,
  mayBeCarriedOut,
} from '../../errors.ts';
import type {
  KeyChange,
  ParsedEntry,
  PruneOptions,
  QueueChange,
  QueueSurvey,
  QueuesSurvey,
  ReadAt,
  Removal,
  SurveyOptions,
  Surveyor,
} from '../../recipe/survey.ts';
import type { KeyEvent, KeysApi, Node } from '../keys-api.ts';
import { checkLockName } from '../paths.ts';
import { LONGEST_WAIT } from '../requests.ts';
import { isComparable } from './entry-requests.ts';
import { readDirectory, readKey, type V2Entry } from './reading.ts';
import {
  BY_QUORUM,
  checkPrefix,
  directoriesFrom,
  lockNameOf,
  locksIn,
  parsedEntriesAmong,
  queueAmong,
  readLockDirectories,
} from './survey.ts';

const REMOVALS = new Set(['delete', 'compareAndDelete', 'expire']);

/** The queues of etcd v2, for observers and for the command line. */
export class V2Surveyor implements Surveyor {
  readonly #keys: KeysApi;

  constructor(keys: KeysApi) {
    this.#keys = keys;
  }

  checkName(name: string): void {
    checkLockName(name);
  }

  checkPrefix(prefix: string): void {
    checkPrefix(prefix);
  }

  /** Always with TTLs, which a listing on etcd v2 contains. */
  async lock(name: string, { signal }: SurveyOptions = {}): Promise<QueueSurvey> {
    checkLockName(name);
    const path = `${this.#keys.lockPrefix}/${name}`;
    const { nodes, ...readAt } = await readDirectory(this.#keys, path, { signal, ...BY_QUORUM });
    return { queue: queueAmong(name, path, nodes), ...readAt };
  }

  async locks(prefix: string): Promise<QueuesSurvey> {
    const { directories, ...readAt } = await readLockDirectories(this.#keys, prefix);
    const queues = locksIn(this.#keys, directories).map(([name, { key, nodes }]) => queueAmong(name, key, nodes));
    return { queues: queues.filter(({ name }) => name.startsWith(prefix)), ...readAt };
  }

  async nextChanges(
    lock: string | undefined,
    { index: after, clusterId }: ReadAt,
    { signal }: { readonly signal: Source },
  ): Promise<readonly KeyChange[] | undefined> {
    const { lockPrefix } = this.#keys;
    const path = lock === undefined ? lockPrefix : `${lockPrefix}/${lock}`;
    try {
      // Without a timeout: a watch that begins again after a long silence finds its index cleared on a busy store.
      const timeout = Number.POSITIVE_INFINITY;
      const event = await this.#keys.watch(path, { after, recursive: true, timeout, signal });
      return event && event.clusterId === clusterId ? [this.#changeOf(event)] : undefined;
    } catch (error) {
      if (error instanceof EtcdEventIndexCleared) return undefined;
      throw error;
    }
  }

  #changeOf({ action, node, index }: KeyEvent): KeyChange {
    const { key } = node;
    if (REMOVALS.has(action)) return { how: action === 'expire' ? 'expired' : 'removed', key, index };
    const name = lockNameOf(this.#keys, { key: key.slice(0, key.lastIndexOf('/')) });
    const [entry] = name === '' ? [] : parsedEntriesAmong(name, [node]);
    return { how: 'written', key, index, ...(entry && { entry }) };
  }

  async next(
    survey: QueueSurvey,
    { signal }: { readonly signal: Source },
  ): Promise<readonly QueueChange[] | undefined> {
    const startedAt = now();
    try {
      const event = await this.#keys.watch(survey.queue.path, { after: survey.index, recursive: true, signal });
      if (event) return event.clusterId === survey.clusterId ? [changeBy(event, survey)] : undefined;
    } catch (error) {
      if (error instanceof EtcdEventIndexCleared) return undefined;
      throw error;
    }
    if (now() - startedAt >= LONGEST_WAIT * 1000) return undefined;
    throw new EtcdConnectionFailed(`the long poll of ${survey.queue.path} ended without an event`);
  }

  async remove({ key, value, modifiedIndex }: V2Entry & ParsedEntry): Promise<Removal> {
    try {
      // A renewal by python-etcd changes the index, so compare the value if possible.
      await this.#keys.delete(key, isComparable(value) ? { prevValue: value } : { prevIndex: modifiedIndex });
      return 'removed';
    } catch (error) {
      if (mayBeCarriedOut(error)) {
        const found = await readKey(this.#keys, key);
        if (!found) return 'absent';
        return found.node.value === value ? 'present' : 'changed';
      }
      if (error instanceof EtcdKeyNotFound) return 'gone';
      if (error instanceof EtcdCompareFailed) return 'changed';
      throw error;
    }
  }

  /** Removes the empty directories of locks. Children come before their parents. */
  async *prune(prefix: string, { dryRun }: PruneOptions): AsyncIterable<string> {
    const { directories } = await readLockDirectories(this.#keys, prefix);
    for (const node of directories.flatMap(emptyDirectories)) {
      const name = lockNameOf(this.#keys, node);
      if (name.startsWith(prefix) && (dryRun || (await this.#removeIfEmpty(node)))) yield name;
    }
  }

  /**
   * Removes a directory if it is empty. Returns false if an entry was added, or if someone else has removed the directory. After an
   * unanswered request, a missing directory counts as removed by that request.
   */
  async #removeIfEmpty({ key }: Node): Promise<boolean> {
    try {
      await this.#keys.delete(key, { dir: true });
      return true;
    } catch (error) {
      if (error instanceof EtcdKeyNotFound) return error.outcomeUnknown;
      if (error instanceof EtcdDirNotEmpty) return false;
      throw error;
    }
  }
}

/** Returns the queue after a change. Changes in directories below, the queues of other locks, leave its entries as they are. */
export function changeBy(
  { action, node, prevNode, index }: KeyEvent,
  { queue: { name, path, entries } }: QueueSurvey,
): QueueChange {
  // The removal of a directory removes everything in it.
  const others = entries.filter(({ key }) => key !== node.key && !key.startsWith(`${node.key}/`));
  if (REMOVALS.has(action)) return { how: action === 'expire' ? 'expired' : 'removed', entries: others, index };
  const isChild = node.key === `${path}${node.key.slice(node.key.lastIndexOf('/'))}`;
  const [changed] = isChild ? parsedEntriesAmong(name, [node]) : [];
  if (!changed) return { how: 'written', entries, index };
  const how = action === 'set' && !prevNode ? 're-created' : 'written';
  return { how, entries: [...others, changed].sort((a, b) => (a.key < b.key ? -1 : 1)), index };
}

/** Returns the directories that have no files at any depth, children before their parents. */
function emptyDirectories(top: Node): Node[] {
  const empty = new Set<Node>();
  for (const directory of directoriesFrom(top).toReversed())
    if (directory.nodes.every((child) => empty.has(child))) empty.add(directory);
  return [...empty];
}
