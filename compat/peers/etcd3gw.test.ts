import { execFile } from 'node:child_process';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { expect, inject, test } from 'vitest';
import { cache } from '../../scripts/peers/cache.mjs';
import { EmbeddedEtcd } from '../../src/server/index.ts';
import { tied } from '../../test/support/tied.ts';

const execute = promisify(execFile);
const PROGRAM = fileURLToPath(new URL('etcd3gw/outcomes.py', import.meta.url));

/** Number of functional tests in the version of etcd3gw that requirements.txt names. */
const TESTS = 23;

/** The outcomes of etcd3gw's tests, by name. */
interface Outcomes {
  readonly passed: readonly string[];
  /** With the traceback of each. */
  readonly failed: Readonly<Record<string, string>>;
  /** With the reason of each. */
  readonly skipped: Readonly<Record<string, string>>;
}

async function outcomesOn(url: string, signal: AbortSignal): Promise<Outcomes> {
  const [python, ...args] = tied([join(cache, 'etcd3gw/bin/python'), PROGRAM]);
  const env = { ...process.env, TOOZ_TEST_HTTP_URL: url, TOOZ_TEST_ETCD_PORT: new URL(url).port };
  const { stdout } = await execute(python, args, { env, signal });
  return JSON.parse(stdout) as Outcomes;
}

test.concurrent.for(['3.4', '3.5', '3.6'] as const)(
  'etcd3gw passes all its functional tests on etcd %s, and on an embedded server of that version',
  async (version, { signal }) => {
    await using embedded = await EmbeddedEtcd.start({ version });
    const [real, ours] = await Promise.all(
      [inject('servers')[version], embedded.url].map((url) => outcomesOn(url, signal)),
    );
    expect(real).toMatchObject({ failed: {}, skipped: {} });
    expect(real?.passed).toHaveLength(TESTS);
    expect(ours).toEqual(real);
  },
);
