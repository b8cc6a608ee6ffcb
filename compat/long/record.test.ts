import { spawnSync } from 'node:child_process';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect, test } from 'vitest';
import { temporaryDirectory } from '../../test/support/temporary.ts';
import { type Exchange, type Scenario, scenarios, scenariosIn } from '../transcript.ts';

const script = fileURLToPath(new URL('../../scripts/record.mjs', import.meta.url));

test('recording again gives the same requests of python-etcd and the same answers of etcd', () => {
  const file = join(temporaryDirectory(), 'again.json');
  const { status, stderr } = spawnSync(process.execPath, [script, file], { encoding: 'utf8' });
  expect(status, stderr).toBe(0);
  expect(scenariosIn(file).map(comparable)).toEqual(scenarios.map(comparable));
});

/** Its requests and the outcomes, without what differs each time: uuids, the order of listings, and how often python-etcd polled. */
function comparable({ scenario, exchanges }: Scenario) {
  const inOrder = exchanges.toSorted((one, other) => one.at - other.at).map(textOf);
  return { scenario, exchanges: inOrder.filter((text, i) => !text.includes('wait=true') || text !== inOrder[i - 1]) };
}

function textOf({ request: { method, path, body: form }, response: { status, body } }: Exchange): string {
  const outcome = typeof body === 'string' || body === null ? body : (body.action ?? body.errorCode);
  return `${method} ${path} ${form?.replace(/[0-9a-f]{32}/, 'UUID')}: ${status} ${outcome}`;
}
