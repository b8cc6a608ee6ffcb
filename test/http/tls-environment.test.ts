import { expect, test } from 'vitest';
import { makeAuthority } from '../support/certificates.ts';
import { runCli } from '../support/cli.ts';
import { runScript } from '../support/script.ts';
import { serveTls } from '../support/tls-server.ts';

const [authority, stranger] = [makeAuthority(), makeAuthority()];
const UNSAFE = { NODE_TLS_REJECT_UNAUTHORIZED: '0' };

test.each([
  ['of an unknown authority', stranger.issue()],
  ['for another host', authority.issue({ hosts: ['elsewhere.test'] })],
])('with NODE_TLS_REJECT_UNAUTHORIZED=0, no request is sent to a server with a certificate %s', async (_, identity) => {
  const etcd = await serveTls(identity);
  const options = { endpoints: etcd.url, ca: authority.ca, username: 'root', password: 'secret' };
  const script = `
    import { V2Client } from './dist/v2/client.js';
    const client = new V2Client(${JSON.stringify(options)});
    // Background work does not keep the process alive.
    const alive = setInterval(() => {}, 1_000);
    const calls = [
      client.createInOrder('/x', 'u1'),
      client.get('/x'),
      client.watch('/x'),
      client.delete('/x', { background: true }),
    ];
    const results = await Promise.allSettled(calls);
    console.log(JSON.stringify(results.map(({ reason }) => reason?.code ?? 'answered')));
    clearInterval(alive);
    await client.close();
  `;
  const { code, stdout, stderr } = await runScript(script, UNSAFE);
  expect(code, stderr).toBe(0);
  expect(JSON.parse(stdout)).toEqual(Array(4).fill('ETCD_TLS_FAILED'));
  expect(etcd.connections).toBeGreaterThanOrEqual(4);
  expect(etcd.requests).toBe(0);
});

test('with NODE_TLS_REJECT_UNAUTHORIZED=0, doctor sends no password to an untrusted server', async () => {
  const etcd = await serveTls(stranger.issue());
  const args = ['doctor', '--endpoints', etcd.url, '--user', 'root:secret'];
  const { code, stdout } = await runCli(args, UNSAFE);
  expect(code).toBe(1);
  expect(stdout).toContain('not trusted');
  expect(etcd.requests).toBe(0);
});
