import type { Command } from 'commander';
import { EtcdClient, type StoreApi } from '../../client.ts';
import type { LockQueue, ParsedEntry } from '../../recipe/survey.ts';
import { clientOptions, connectionOf } from '../connection.ts';
import { checked, ExitCode, UsageError } from '../exit-codes.ts';
import { outcome, withOpen } from '../session.ts';
import { type Handle, parseHandle } from './handle.ts';

/** A handle, and a client of a store that has its entry. */
export interface OpenHandle {
  readonly handle: Handle;
  readonly api: StoreApi;
  readonly client: EtcdClient;
}

/** The `--handle` option of the commands that end or prolong a hold of `acquire`. */
export const HANDLE_FLAG = ['--handle <handle>', 'what "acquire" has printed'] as const;

/**
 * Calls `action` for each store that has an entry of the handle, v3 first, as a holder leaves its queues. Sets the exit code to the first
 * one that is not 0. An error is printed as one line on stderr.
 */
export async function withHandle(command: Command, action: (open: OpenHandle) => Promise<number>): Promise<void> {
  process.exitCode = await outcome(async () => {
    const { handle: text = '' } = command.opts<{ handle?: string }>();
    const handle = parseHandle(text);
    const options = optionsOf(handle, command);
    const stores: readonly StoreApi[] = handle.api === 'both' ? ['v3', 'v2'] : [handle.api];
    const codes: number[] = [];
    for (const api of stores) {
      const open = () => checked(() => new EtcdClient({ ...options, api }));
      codes.push(await outcome(() => withOpen(open, (client) => action({ handle, api, client }))));
    }
    return codes.find((code) => code !== ExitCode.ok) ?? ExitCode.ok;
  });
}

/** Returns the entry of the handle; undefined if it is gone, or the key has another entry. */
export const entryOf = (
  { handle: { uuid, id, api: of }, api }: OpenHandle,
  queue: LockQueue,
): ParsedEntry | undefined =>
  queue.entries.find(
    (entry) => entry.uuid === uuid && ((of === 'both' && api === 'v3') || entry.key === `${queue.path}/${id}`),
  );

/** @throws {UsageError} if a flag contradicts the handle. Variables do not: they are for the other commands, too. */
function optionsOf({ api, lockPrefix, clusterId }: Handle, command: Command) {
  const flags = connectionOf(command);
  if (flags.api !== undefined && flags.api !== api)
    throw new UsageError(`--api ${flags.api} does not fit the handle, which is of --api ${api}`);
  if (flags.lockPrefix !== undefined && flags.lockPrefix !== lockPrefix)
    throw new UsageError(`--lock-prefix ${flags.lockPrefix} does not fit the handle, which has ${lockPrefix}`);
  return { ...clientOptions({ ...flags, api, lockPrefix }), expectedClusterId: clusterId };
}
