// The bridge as docs/bridge.md, the Dockerfile and docker-compose.yml start it. Without Docker and systemd: only their command lines
// are run, on free ports.
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { expect, inject, onTestFinished, test } from 'vitest';
import { parse } from 'yaml';
import { startCli } from '../support/cli.ts';
import { startNode } from '../support/script.ts';

const read = (file: string): string => readFileSync(new URL(`../../${file}`, import.meta.url), 'utf8');

const [unit = ''] = /(?<=```ini\n)[^`]*(?=```)/.exec(read('docs/bridge.md')) ?? [];
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

test('the unit for systemd starts a bridge, by variables that it names', async () => {
  const [, command = ''] = /^ExecStart=\/usr\/bin\/etcd-v2-lock (.*)$/m.exec(unit) ?? [];
  const [, variable = ''] = /^Environment=(\w+)=http:/m.exec(unit) ?? [];
  await expectReady(await start(command.split(' '), { [variable]: inject('etcd') }));
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
