import type { Command } from 'commander';
import { errorText } from '../base/error-text.ts';
import { EtcdClient, type EtcdClientOptions } from '../client.ts';
import { EtcdKeysLeft, EtcdLockTimeout } from '../errors.ts';
import type { CloseOptions } from '../http/cluster.ts';
import { type ConnectionOptions, connectionOf, storeOptions } from './connection.ts';
import { CliError, checked, exitCodeOf } from './exit-codes.ts';
import { complain } from './streams.ts';

/** The `--json` option of the commands that print data. */
export const JSON_FLAG = ['--json', 'print JSON'] as const;
/** The `--wide` option of the commands that print tables. */
export const WIDE_FLAG = ['--wide', 'print all columns in full, even if they do not fit the terminal'] as const;

/** Seconds to remove the own entry after a timeout. In an outage it stays until its TTL has passed. */
const REMOVE_WITHIN = 1;

/**
 * Returns a commander action that calls `action` with a client, closes the client, and sets the exit code to which `action`
 * resolved. An error is printed as one line on stderr.
 * @param optionsOf returns the client's options; by default those of one store
 */
export function withClient(
  action: (client: EtcdClient, command: Command) => Promise<number>,
  optionsOf: (flags: ConnectionOptions) => EtcdClientOptions = storeOptions,
): (...args: unknown[]) => Promise<void> {
  return async (...args) => {
    const command = args.at(-1) as Command;
    process.exitCode = await outcome(async () => {
      const options = optionsOf(connectionOf(command));
      const open = () => checked(() => new EtcdClient(options));
      return withOpen(open, (client) => action(client, command));
    });
  };
}

/** Calls `action` with the client that `open` returns, and closes the client. */
export async function withOpen<T>(open: () => EtcdClient, action: (client: EtcdClient) => Promise<T>): Promise<T> {
  const client = open();
  let limits: CloseOptions = {};
  try {
    return await action(client);
  } catch (error) {
    if (isTimeout(error)) limits = { timeout: REMOVE_WITHIN };
    throw error;
  } finally {
    await close(client, limits);
  }
}

/** Runs an action and returns its exit code. An error is printed on stderr and determines the exit code. */
export async function outcome(action: () => Promise<number>): Promise<number> {
  try {
    return await action();
  } catch (error) {
    complain(errorText(error));
    return exitCodeOf(error);
  }
}

/** Whether a wait has timed out; also if its error was given another exit code. */
const isTimeout = (error: unknown): boolean =>
  error instanceof EtcdLockTimeout || (error instanceof CliError && isTimeout(error.cause));

/** Closes the client. Keys that could not be removed are reported, but do not change the exit code. */
async function close(client: EtcdClient, limits: CloseOptions): Promise<void> {
  try {
    await client.close(limits);
  } catch (error) {
    if (!(error instanceof EtcdKeysLeft)) throw error;
    complain(error.message);
  }
}
