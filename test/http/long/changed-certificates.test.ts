// Certificates in files that are replaced while holders and waiters are at work.
import { X509Certificate } from 'node:crypto';
import { once } from 'node:events';
import { mkdirSync, renameSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:https';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { connect, type TLSSocket } from 'node:tls';
import { describe, expect, onTestFinished, test } from 'vitest';
import { ignore } from '../../../src/base/cancellation.ts';
import { EtcdClient, type EtcdClientOptions, EtcdTlsFailed, LockManager } from '../../../src/index.ts';
import { Bridge } from '../../../src/server/bridge/bridge.ts';
import { ANY_API, APIS } from '../../support/apis.ts';
import { type Authority, type Identity, makeAuthority } from '../../support/certificates.ts';
import { freshName, rejection } from '../../support/locks.ts';
import { useTlsEtcd } from '../../support/secured-etcd.ts';
import { temporaryDirectory } from '../../support/temporary.ts';
import { until } from '../../support/until.ts';

const authority = makeAuthority();
/** Made before: making one blocks the process for a while, and so the renewals. */
const identities = Array.from({ length: 24 }, () => authority.issue());
let issued = 0;
/** Returns another identity than the last 23 times. */
const another = (): Identity => identities[issued++ % identities.length] as Identity;

/** Files as Kubernetes mounts a secret: links to a directory that is replaced as a whole. */
function useSecret(ca: string, first: Identity) {
  const directory = temporaryDirectory();
  let count = 0;
  const replace = ({ cert, key }: Identity, authorities = ca): void => {
    count += 1;
    const version = join(directory, `..${count}`);
    mkdirSync(version);
    for (const [name, text] of [
      ['ca', authorities],
      ['cert', cert],
      ['key', key],
    ] as const)
      writeFileSync(join(version, name), text);
    symlinkSync(version, join(directory, '..next'));
    renameSync(join(directory, '..next'), join(directory, '..data'));
    if (count > 1) rmSync(join(directory, `..${count - 1}`), { recursive: true });
  };
  replace(first);
  const [caFile, certFile, keyFile] = ['ca', 'cert', 'key'].map((name) => {
    symlinkSync(join('..data', name), join(directory, name));
    return join(directory, name);
  }) as [string, string, string];
  return { options: { caFile, certFile, keyFile }, replace };
}

function useLocks(options: EtcdClientOptions, ttl = 9): LockManager {
  const client = new EtcdClient({ api: ANY_API, ...options });
  onTestFinished(() => client.close({ timeout: 0 }).catch(ignore));
  return new LockManager(client, { ttl });
}

/** The serial number of the certificate that a server shows to a new connection. */
async function serialOf(url: string): Promise<string> {
  const { hostname: host, port } = new URL(url);
  const socket = connect({ host, port: Number(port), ca: authority.ca });
  await once(socket, 'secureConnect');
  const { serialNumber } = socket.getPeerCertificate();
  socket.destroy();
  return serialNumber;
}

function useWarnings(): string[] {
  const warnings: string[] = [];
  const note = ({ message }: Error): void => void warnings.push(message);
  process.on('warning', note);
  onTestFinished(() => void process.off('warning', note));
  return warnings;
}

/** Seconds: for a busy machine. */
const TTL = 15;

/** Number of loops that lock and release while certificates are replaced. */
const WORKERS = 4;

/** An HTTPS server in front of etcd that notes with which certificate each request came. */
async function useWitness(clients: Authority, target: string) {
  const seen: string[] = [];
  const { cert, key } = authority.issue();
  const server = createServer({ cert, key, ca: clients.ca, requestCert: true }, async (incoming, outgoing) => {
    seen.push((incoming.socket as TLSSocket).getPeerCertificate().serialNumber);
    const chunks: Buffer[] = [];
    for await (const chunk of incoming) chunks.push(chunk as Buffer);
    const { method = 'GET', url = '' } = incoming;
    const body = chunks.length === 0 ? null : Buffer.concat(chunks);
    const type = incoming.headers['content-type'];
    const headers = type === undefined ? {} : { 'content-type': type };
    const gone = new AbortController();
    outgoing.on('close', () => gone.abort());
    try {
      const answer = await fetch(target + url, { method, body, headers, signal: gone.signal });
      outgoing.writeHead(answer.status, Object.fromEntries(answer.headers));
      for await (const chunk of answer.body ?? []) outgoing.write(chunk);
      outgoing.end();
    } catch {
      outgoing.destroy();
    }
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  onTestFinished(() => {
    server.close();
    server.closeAllConnections();
  });
  return { url: `https://127.0.0.1:${(server.address() as AddressInfo).port}`, seen };
}

/** Requests for locks, one after another, until they are stopped. */
function useLoad(locks: LockManager) {
  const load = { on: true, done: 0 };
  const working = Array.from({ length: WORKERS }, async () => {
    while (load.on) {
      await locks.request(freshName(), () => undefined);
      load.done += 1;
    }
  });
  const stop = async (): Promise<void> => {
    load.on = false;
    await Promise.all(working);
  };
  return { load, stop };
}

/**
 * Replaces a certificate ten times. Checks that requests succeed after each change, and that once the new certificate is in use, no later
 * request comes with an earlier one.
 */
async function replaceTenTimes(
  replace: () => Promise<void> | void,
  { seen }: { readonly seen: readonly string[] },
  load: { readonly done: number },
): Promise<void> {
  /** Resolves when each worker has begun a request since this call, and has ended it. */
  const everyoneWorks = async (): Promise<void> => {
    const from = load.done;
    await until(
      () => load.done,
      (done) => done >= from + 2 * WORKERS,
    );
  };
  for (let i = 0; i < 10; i += 1) {
    const before = new Set(seen);
    await replace();
    const withOld = async (): Promise<readonly string[]> => {
      const from = seen.length;
      await everyoneWorks();
      return seen.slice(from).filter((serial) => before.has(serial));
    };
    // The clients of the two stores look at the files at different times.
    await until(withOld, ({ length }) => length === 0);
    expect(await withOld()).toEqual([]);
  }
  expect(new Set(seen).size).toBe(11);
}

async function expectHeld(holds: readonly Awaited<ReturnType<typeof useHold>>[]): Promise<void> {
  for (const held of holds) held.assertHeld();
  expect(await Promise.all(holds.map((held) => held.release()))).toEqual(holds.map(() => true));
}

const useHold = (locks: LockManager) => locks.acquire(freshName());
const useHolds = (locks: LockManager) => Promise.all(Array.from({ length: 5 }, () => useHold(locks)));

describe.each(APIS)('with api %s', (api) => {
  test('ten certificates replaced under load cost no hold, and once the new one is in use, no later request has an old one', async () => {
    const { etcd } = await useTlsEtcd(authority.issue(), authority);
    const { url, seen } = await useWitness(authority, etcd.url);
    const { options, replace } = useSecret(authority.ca, another());
    const locks = useLocks({ api, endpoints: url, ...options }, TTL);
    const holds = await useHolds(locks);
    const { load, stop } = useLoad(locks);
    await replaceTenTimes(() => replace(another()), { seen }, load);
    await stop();
    await expectHeld(holds);
  });

  test('a certificate of another authority is refused by etcd, and a hold survives until the right one is back', async () => {
    const { url } = await useTlsEtcd(authority.issue(), authority);
    const stranger = makeAuthority();
    const { options, replace } = useSecret(authority.ca, authority.issue());
    const locks = useLocks({ api, endpoints: url, ...options }, 20);
    const held = await locks.acquire(freshName());
    replace(stranger.issue());
    await until(
      () =>
        locks.acquire(freshName(), { timeout: 5 }).then(
          (other) => other.release().then(ignore),
          (error) => error,
        ),
      (error) => error instanceof EtcdTlsFailed && /refuses the client certificate/.test(error.message),
    );
    replace(authority.issue());
    await until(
      () => locks.request(freshName(), () => 'held').catch(() => 'refused'),
      (outcome) => outcome === 'held',
    );
    held.assertHeld();
    expect(await held.release()).toBe(true);
  });
});

test.each(APIS.filter((api) => api !== 'v2'))(
  'ten certificates of a bridge to etcd, and ten for its clients, cost no hold on %s of its clients',
  async (api) => {
    const { etcd } = await useTlsEtcd(authority.issue(), authority);
    const { url, seen } = await useWitness(authority, etcd.url);
    const toEtcd = useSecret(authority.ca, another());
    const own = useSecret(authority.ca, another());
    const { certFile, keyFile } = own.options;
    const bridge = await Bridge.start({ api, endpoints: url, ...toEtcd.options, tls: { certFile, keyFile } });
    onTestFinished(() => bridge.stop());
    const locks = useLocks({ api: 'v2', endpoints: bridge.url, caFile: own.options.caFile }, TTL);
    const holds = await useHolds(locks);
    const { load, stop } = useLoad(locks);
    const shown = new Set<string>();
    await replaceTenTimes(
      async () => {
        const before = await serialOf(bridge.url);
        shown.add(before);
        const next = another();
        own.replace(next);
        toEtcd.replace(another());
        await until(
          () => serialOf(bridge.url),
          (serial) => serial === new X509Certificate(next.cert).serialNumber,
        );
      },
      { seen },
      load,
    );
    await stop();
    await expectHeld(holds);
    expect(shown.size).toBe(10);
  },
);

test('functions that return other certificates replace them, and one that fails keeps the old ones and causes a warning', async () => {
  const { etcd } = await useTlsEtcd(authority.issue(), authority);
  const { url, seen } = await useWitness(authority, etcd.url);
  const warnings = useWarnings();
  let current = another();
  let isBroken = false;
  const locks = useLocks({
    endpoints: url,
    ca: authority.ca,
    cert: () => {
      if (isBroken) throw new Error('the store of certificates is down');
      return current.cert;
    },
    key: () => current.key,
  });
  const held = await useHold(locks);
  const { load, stop } = useLoad(locks);
  await replaceTenTimes(
    () => {
      current = another();
    },
    { seen },
    load,
  );
  isBroken = true;
  await until(
    () => warnings.length,
    (count) => count === 1,
  );
  expect(warnings[0]).toContain('the function cert threw: the store of certificates is down');
  await stop();
  expect(await locks.request(freshName(), () => 'held')).toBe('held');
  await expectHeld([held]);
  expect(() => new EtcdClient({ cert: () => 'no PEM', key: () => current.key })).toThrow(
    'the function cert, the function key: cert and key must be a pair',
  );
  const cert = (): string => {
    throw new Error('not yet');
  };
  expect(() => new EtcdClient({ cert, key: current.key })).toThrow('the function cert threw: not yet');
  const missing = (() => undefined) as never;
  expect(() => new EtcdClient({ ca: missing })).toThrow('the function ca must return PEM text, got undefined');
});

test('a broken file keeps the old certificate and causes one warning, and the next good one is used', async () => {
  const { url } = await useTlsEtcd(authority.issue(), authority);
  const { options, replace } = useSecret(authority.ca, authority.issue());
  const warnings = useWarnings();
  const locks = useLocks({ endpoints: url, ...options });
  expect(await locks.request(freshName(), () => 'held')).toBe('held');
  const { cert, key } = authority.issue();
  replace({ cert, key: authority.issue().key });
  await until(
    () => warnings.length,
    (count) => count === 1,
  );
  expect(warnings[0]).toMatch(
    /^the changed TLS files cannot be used, and the old certificates stay in use: .*mismatch/,
  );
  expect(warnings[0]).not.toContain(key.split('\n')[1]);
  expect(await locks.request(freshName(), () => 'held')).toBe('held');
  replace({ cert: 'half a certifi', key });
  await until(
    () => warnings.length,
    (count) => count === 2,
  );
  expect(await locks.request(freshName(), () => 'held')).toBe('held');
  replace({ cert, key });
  expect(await locks.request(freshName(), () => 'held')).toBe('held');
});

test('an authority that is replaced is used for the certificate of etcd', async () => {
  const next = makeAuthority();
  const { url, etcd, present } = await useTlsEtcd(authority.issue());
  const { options, replace } = useSecret(authority.ca, authority.issue());
  const locks = useLocks({ endpoints: url, ...options }, 30);
  const held = await locks.acquire(freshName());
  present(next.issue());
  await etcd.restart();
  expect(await rejection(locks.acquire(freshName()))).toBeInstanceOf(EtcdTlsFailed);
  replace(authority.issue(), next.ca);
  await until(
    () => locks.request(freshName(), () => 'held').catch(() => 'refused'),
    (outcome) => outcome === 'held',
  );
  expect(await held.release()).toBe(true);
});

test.each<[string, (files: ReturnType<typeof useSecret>['options']) => EtcdClientOptions, string]>([
  ['a file that does not exist', () => ({ caFile: '/nowhere/ca.pem' }), 'cannot read "/nowhere/ca.pem": ENOENT'],
  ['a directory', () => ({ caFile: '/tmp' }), 'cannot read "/tmp": EISDIR'],
  ['a certificate without its key', ({ certFile }) => ({ certFile }), 'cert and key must be given together'],
  [
    'a key for a certificate',
    ({ keyFile }) => ({ certFile: keyFile, keyFile }),
    'cert and key must be a pair: no start',
  ],
  ['a text and a file', ({ caFile }) => ({ caFile, ca: authority.ca }), 'ca and caFile cannot be used together'],
  ['no path', () => ({ caFile: '' }), 'caFile must be a path, got ""'],
])('%s is refused by the constructor, with the paths and no key', (_, make, message) => {
  const identity = authority.issue();
  const { options } = useSecret(authority.ca, identity);
  const construct = () => new EtcdClient(make(options));
  expect(construct).toThrow(message);
  expect(construct).not.toThrow(new RegExp(identity.key.split('\n')[1]?.slice(0, 30) ?? ''));
});
