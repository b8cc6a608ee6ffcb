import { randomInt } from 'node:crypto';
import { writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { type Outcome, runCampaign } from './campaign.ts';
import { reportOn } from './report.ts';
import { STORE } from './stores/tested.ts';
import { brokenIn, judgeLock } from './verdict.ts';

/** `npm run soak` sets these. */
const SEED = Number(process.env['SOAK_SEED'] ?? randomInt(2 ** 31));
const SECONDS = Number(process.env['SOAK_SECONDS'] ?? 60);
const BRIDGED = process.env['SOAK_BRIDGES'] === '1';
/** Seconds beside the campaign: to start a cluster, and for all contenders to finish and all leases to expire. */
const AROUND = 360;

/** Writes the outcome to a file and returns the path of the file. */
function keep(outcome: Outcome): string {
  const file = join(tmpdir(), `etcd-v2-lock-campaign-${STORE.api}-${outcome.seed}.json`);
  const plain = (_: string, value: unknown) =>
    typeof value === 'bigint' ? String(value) : value instanceof Map ? Object.fromEntries(value) : value;
  writeFileSync(file, JSON.stringify(outcome, plain, 1));
  return file;
}

test(
  `${SECONDS} s of random faults on etcd ${STORE.api}${BRIDGED ? ' and bridges' : ''} (seed ${SEED}) break no promise`,
  async () => {
    const outcome = await runCampaign(STORE, { seed: SEED, seconds: SECONDS, bridged: BRIDGED });
    const locks = outcome.locks.map(judgeLock);
    const broken = brokenIn(outcome, locks);
    // biome-ignore lint/suspicious/noConsole: no other output shows the waits.
    console.info(reportOn(outcome, locks).join('\n'));
    if (broken.length > 0) expect.fail([`broken promises (see ${keep(outcome)}):`, ...broken].join('\n'));
  },
  (SECONDS + AROUND) * 1000,
);
