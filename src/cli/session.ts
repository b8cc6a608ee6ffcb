import type { Command } from 'commander';
import { EtcdKeysLeft } from '../errors.ts';
import { EtcdClient } from '../v2/client.ts';
import { clientOptions, connectionOf } from './connection.ts';
import { checked, exitCodeOf } from './exit-codes.ts';
import { complain } from './streams.ts';

/** The `--json` of the commands that print data. */
export const JSON_FLAG = ['--json', 'print JSON, for programs'] as const;

/**
 * Makes the action of a command that asks etcd: it gets a client for as long as it runs, and what it resolves to is the
 * exit code. An error is told in one line.
 */
export function withClient(
  action: (client: EtcdClient, command: Command) => Promise<number>,
): (...args: unknown[]) => Promise<void> {
  return async (...args) => {
    const command = args.at(-1) as Command;
    process.exitCode = await outcome(async () => {
      const client = connect(command);
      try {
        return await action(client, command);
      } finally {
        await close(client);
      }
    });
  };
}

/** @throws {UsageError} for what no client can be made of */
function connect(command: Command): EtcdClient {
  const options = clientOptions(connectionOf(command));
  return checked(() => new EtcdClient(options));
}

/** Runs an action; what it fails with is told on stderr, and becomes the exit code. */
export async function outcome(action: () => Promise<number>): Promise<number> {
  try {
    return await action();
  } catch (error) {
    complain(error instanceof Error ? error.message : String(error));
    return exitCodeOf(error);
  }
}

/** The keys that could not be removed spoil nothing, but someone should know. */
async function close(client: EtcdClient): Promise<void> {
  try {
    await client.close();
  } catch (error) {
    if (!(error instanceof EtcdKeysLeft)) throw error;
    complain(error.message);
  }
}
