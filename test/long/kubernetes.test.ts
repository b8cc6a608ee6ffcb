// The manifest in examples/kubernetes, without Kubernetes: what it starts is started here, with its secrets as files, on a free port.
import { once } from 'node:events';
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import type { IncomingMessage } from 'node:http';
import { get } from 'node:https';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { parseAllDocuments } from 'yaml';
import { EtcdClient, LockManager } from '../../src/index.ts';
import { makeAuthority } from '../support/certificates.ts';
import { startCli } from '../support/cli.ts';
import { freshName } from '../support/locks.ts';
import { APP, useTlsEtcd } from '../support/secured-etcd.ts';
import { guardV3 } from '../support/secured-v3.ts';
import { temporaryDirectory } from '../support/temporary.ts';

interface Probe {
  readonly httpGet: { readonly path: string; readonly port: string; readonly scheme: string };
}
interface Container {
  readonly args: readonly string[];
  readonly env: readonly {
    name: string;
    value?: string;
    valueFrom?: { secretKeyRef?: { name: string; key: string } };
  }[];
  readonly volumeMounts: readonly { name: string; mountPath: string }[];
  readonly startupProbe: Probe;
  readonly readinessProbe: Probe;
  readonly livenessProbe: Probe;
}
interface PodSpec {
  readonly containers: readonly [Container];
  readonly volumes: readonly { name: string; secret: { secretName: string } }[];
}

const objects = parseAllDocuments(
  readFileSync(new URL('../../examples/kubernetes/bridge.yaml', import.meta.url), 'utf8'),
).map((document) => document.toJS() as { kind: string; spec: { template: { spec: PodSpec } } });
const pod = objects.find(({ kind }) => kind === 'Deployment')?.spec.template.spec;
const [container] = pod?.containers ?? expect.unreachable('the manifest has no Deployment');

const authority = makeAuthority();
const HOST = 'etcd-v2-lock-bridge.locks.svc';
const OTHER_HOST = 'elsewhere.svc';

/** Secrets by name, each with its values by key. */
type Secrets = Readonly<Record<string, Readonly<Record<string, string>>>>;

const secrets: Secrets = {
  'etcd-v2-lock-bridge': pemOf(authority.issue({ hosts: ['127.0.0.1', HOST, OTHER_HOST] })),
  // etcd's gateway refuses client certificates with a common name.
  'etcd-v2-lock-bridge-etcd': { ...pemOf(authority.issue({ unnamed: true })), 'ca.crt': authority.ca },
  'etcd-v2-lock-bridge-user': { password: APP.password },
};

function pemOf({ cert, key }: { cert: string; key: string }): Readonly<Record<string, string>> {
  return { 'tls.crt': cert, 'tls.key': key };
}

/** Does what Kubernetes does with the container. Resolves to the URL of the bridge. */
async function start(endpoints: string): Promise<string> {
  const directory = temporaryDirectory();
  for (const { name, secret } of pod?.volumes ?? []) {
    const { mountPath } = container.volumeMounts.find((mount) => mount.name === name) ?? expect.unreachable(name);
    mkdirSync(join(directory, mountPath), { recursive: true });
    for (const [key, value] of Object.entries(secrets[secret.secretName] ?? expect.unreachable(secret.secretName)))
      writeFileSync(join(directory, mountPath, key), value);
  }
  const here = (text: string): string => text.replace(/^(?=\/etc\/)/, directory);
  const env = Object.fromEntries(
    container.env.map(({ name, value = '', valueFrom }) => {
      const { name: secret = '', key = '' } = valueFrom?.secretKeyRef ?? {};
      return [name, here(secrets[secret]?.[key] ?? value)];
    }),
  );
  const variables: Record<string, string> = { ...env, NAMESPACE: 'locks' };
  const args = container.args.map((word) => here(word).replaceAll(/\$\((\w+)\)/g, (_, name) => variables[name] ?? ''));
  expect(args).toContain('0.0.0.0:4001');
  const cli = startCli(
    args.map((word) => word.replace('0.0.0.0:4001', '127.0.0.1:0')),
    { ...env, ETCD_ENDPOINTS: endpoints, ETCDCTL_USERNAME: APP.username },
  );
  onTestFinished(() => void cli.process.kill('SIGKILL'));
  const [line] = await Promise.race([
    once(cli.process.stdout, 'data') as Promise<[Buffer]>,
    cli.result.then(({ code, stderr }) => expect.unreachable(`exit code ${code}: ${stderr}`)),
  ]);
  return String(line).trimEnd();
}

const statusOf = async (url: string, host = new URL(url).host): Promise<number | undefined> => {
  const request = get(url, { ca: authority.ca, headers: { host }, agent: false });
  const [answer] = (await once(request, 'response')) as [IncomingMessage];
  answer.resume();
  return answer.statusCode;
};

const answersToProbes = (url: string): Promise<(number | undefined)[]> =>
  Promise.all(
    [container.startupProbe, container.readinessProbe, container.livenessProbe].map(({ httpGet: { path, scheme } }) => {
      expect(url).toMatch(new RegExp(`^${scheme}:`, 'i'));
      return statusOf(url + path);
    }),
  );

test('the bridge serves locks over HTTPS, with its own user of an etcd that asks for certificates', async () => {
  const { etcd, url } = await useTlsEtcd(authority.issue(), authority);
  await guardV3(etcd.url);
  const bridge = await start(url);
  const client = new EtcdClient({ endpoints: bridge, ca: authority.ca });
  onTestFinished(() => client.close());
  expect(await new LockManager(client).request(freshName(), () => 'held')).toBe('held');
  expect(await answersToProbes(bridge)).toEqual([200, 200, 200]);
  expect(await statusOf(`${bridge}/metrics`)).toBe(200);
});

test('its Service is known to the bridge by name, and no other name is', async () => {
  expect(objects.map(({ kind }) => kind)).toContain('Service');
  const bridge = await start('https://127.0.0.1:1');
  expect(await statusOf(`${bridge}/version`, `${HOST}:4001`)).toBe(200);
  expect(await statusOf(`${bridge}/version`, `${OTHER_HOST}:4001`)).toBe(403);
});

test('without etcd, a bridge that starts gets no clients, and one that runs keeps them', async () => {
  expect(await answersToProbes(await start('https://127.0.0.1:1'))).toEqual([503, 200, 200]);
});
