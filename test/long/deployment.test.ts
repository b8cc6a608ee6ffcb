// The services as examples/systemd/, the Dockerfile and docker-compose.yml start them. Without Docker and a running systemd: only their
// command lines are run, on free ports.
import { execFile } from 'node:child_process';
import { once } from 'node:events';
import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { expect, inject, onTestFinished, test } from 'vitest';
import { parse } from 'yaml';
import { EmbeddedEtcd } from '../../src/server/index.ts';
import { startCli } from '../support/cli.ts';
import { startNode } from '../support/script.ts';
import { temporaryDirectory } from '../support/temporary.ts';

const read = (file: string): string => readFileSync(new URL(`../../${file}`, import.meta.url), 'utf8');

const UNITS = 'examples/systemd';
/** The arguments of the command that a unit starts. */
const startedBy = (unit: string): string[] =>
  /^ExecStart=\/usr\/bin\/etcd-v2-lock (.*)$/m.exec(read(`${UNITS}/${unit}`))?.[1]?.split(' ') ?? [];
/** The variable with which a unit names the endpoints. */
const endpointsIn = (unit: string): string => /^Environment=(\w+)=http:/m.exec(read(`${UNITS}/${unit}`))?.[1] ?? '';
const dockerfile = read('Dockerfile').replaceAll('\\\n', '');
const compose = parse(read('docker-compose.yml')) as {
  services: { bridge: { environment: Record<string, string>; command: string[] } };
};

/** The words of a `CMD [ … ]` in the Dockerfile. */
const wordsOf = (instruction: RegExp): string[] => JSON.parse(instruction.exec(dockerfile)?.[1] ?? '') as string[];

/** Runs the arguments of a command line, on a free port. Resolves to the URL that it prints. */
async function start(args: readonly string[], env: Record<string, string>): Promise<string> {
  expect(args).toContain('--listen');
  const elsewhere = args.map((word) => word.replace(/^(\d+\.\d+\.\d+\.\d+):4001$/, '127.0.0.1:0'));
  const cli = startCli(elsewhere, env);
  onTestFinished(() => void cli.process.kill('SIGKILL'));
  const [line] = await Promise.race([
    once(cli.process.stdout, 'data') as Promise<[Buffer]>,
    cli.result.then(({ code, stderr }) => expect.unreachable(`exit code ${code}: ${stderr}`)),
  ]);
  return String(line).trimEnd();
}

async function expectReady(url: string): Promise<void> {
  const health = await fetch(`${url}/health`);
  expect([health.status, (await fetch(`${url}/metrics`)).status]).toEqual([200, 200]);
}

test.each(readdirSync(UNITS))('systemd accepts %s', async (unit) => {
  const directory = temporaryDirectory();
  // systemd checks that the program exists. A timer needs its service beside it.
  for (const name of readdirSync(UNITS))
    writeFileSync(join(directory, name), read(`${UNITS}/${name}`).replaceAll('/usr/bin/etcd-v2-lock', '/usr/bin/env'));
  const verified = await promisify(execFile)('systemd-analyze', ['verify', '--man=no', join(directory, unit)]);
  expect(verified).toEqual({ stdout: '', stderr: '' });
});

test('the unit of the bridge starts one, by variables that it names', async () => {
  const unit = 'etcd-v2-lock-bridge.service';
  await expectReady(await start(startedBy(unit), { [endpointsIn(unit)]: inject('etcd') }));
});

test.each([
  ['report.service', '/usr/local/bin/report'],
  ['scheduler.service', '/usr/local/bin/scheduler'],
])('the command line of %s runs its program under the lock', async (unit, program) => {
  const etcd = await EmbeddedEtcd.start();
  onTestFinished(() => etcd.stop());
  const args = startedBy(unit);
  expect(args.at(-1)).toBe(program);
  const cli = startCli([...args.slice(0, -1), 'printenv', 'ETCD_LOCK_NAME'], { [endpointsIn(unit)]: etcd.url });
  expect(await cli.result).toMatchObject({ code: 0, stdout: `${args[1]}\n` });
});

test('the image starts a bridge', async () => {
  expect(wordsOf(/^ENTRYPOINT (.*)$/m)).toEqual(['etcd-v2-lock']);
  await expectReady(await start(wordsOf(/^CMD (.*)$/m), { ETCD_ENDPOINTS: inject('etcd') }));
});

test('its health check fails unless the bridge is ready', async () => {
  const [node, ...args] = wordsOf(/^HEALTHCHECK .*CMD (.*)$/m);
  expect(node).toBe('node');
  const check = (url: string) =>
    startNode(
      args.map((word) => word.replace('http://127.0.0.1:4001', url)),
      {},
    ).result.then(({ code }) => code);
  const ready = await start(wordsOf(/^CMD (.*)$/m), { ETCD_ENDPOINTS: inject('etcd') });
  const unready = await start(wordsOf(/^CMD (.*)$/m), { ETCD_ENDPOINTS: 'http://127.0.0.1:1' });
  expect([await check(ready), await check(unready)]).toEqual([0, 1]);
});

test('the compose profile starts a bridge to its own etcd', async () => {
  const { environment, command } = compose.services.bridge;
  expect(environment).toEqual({ ETCD_ENDPOINTS: 'http://etcd-v3:2379' });
  await expectReady(await start(command, { ETCD_ENDPOINTS: inject('etcd') }));
});
