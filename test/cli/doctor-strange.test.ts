import { describe, expect, inject, onTestFinished, test } from 'vitest';
import { type Alter, useAlteredMember } from '../support/altered-member.ts';
import { runCli } from '../support/cli.ts';
import { serveSilence } from '../support/clients.ts';
import { diagnose, troubles } from '../support/doctor.ts';
import { freshName, raw } from '../support/locks.ts';

const PATIENT = ['--ttl', '300'];
const matching = (text: RegExp) => expect.stringMatching(text);

const noPage = { status: 404, headers: { 'content-type': 'text/plain' }, body: '404 page not found\n' };
const version = (server: string) => ({ body: JSON.stringify({ etcdserver: server, etcdcluster: server }) });

/** Alters the responses of an etcd as if its clock were ahead. */
const ahead =
  (seconds: number): Alter =>
  (_, { headers, body }) => ({
    headers: { ...headers, date: later(headers['date'] ?? '', seconds).toUTCString() },
    body: body.replace(/"expiration":"([^"]+)"/, (_, time) => `"expiration":"${later(time, seconds).toISOString()}"`),
  });
const later = (time: string, seconds: number): Date => new Date(Date.parse(time) + seconds * 1000);

/** Alters the member id, so that the shared etcd looks like a second member. */
const other: Alter = (asked, { body }) =>
  asked.endsWith('/stats/self') ? { body: body.replace(/"id":"\w+"/, '"id":"abc"') } : undefined;

describe('an etcd of another version', () => {
  test('0.4.9 reports its version as plain text, and its key names make locks impossible', async () => {
    const url = await useAlteredMember((asked, { body }) => {
      if (asked.endsWith(' /version')) return { headers: { 'content-type': 'text/plain' }, body: 'etcd 0.4.9' };
      if (/health|members|auth/.test(asked)) return noPage;
      return { body: bare(body) };
    });
    const diagnosis = await diagnose(url, PATIENT);
    expect(diagnosis.code).toBe(1);
    expect(diagnosis.endpoints).toMatchObject([{ version: { server: '0.4.9' } }]);
    expect(troubles(diagnosis)).toMatchObject([
      {
        level: 'fail',
        about: 'names',
        text: matching(/do not sort in the order of creation/),
        advice: matching(/2\.2 or later/),
      },
    ]);
  });

  test('2.1 is recognized by its key names', async () => {
    const url = await useAlteredMember((asked, { body }) =>
      asked.endsWith(' /version') ? version('2.1.0') : { body: bare(body) },
    );
    const diagnosis = await diagnose(url, PATIENT);
    expect(diagnosis.code).toBe(1);
    expect(troubles(diagnosis)).toMatchObject([
      { about: 'names', text: matching(/lock-doctor\/\d{1,6} have no leading zeros/) },
    ]);
  });

  test('3.6 has no v2 API, so the advice is the v3 API, or etcd 3.5 for python-etcd', async () => {
    const url = await useAlteredMember((asked) => {
      if (asked.endsWith(' /version')) return version('3.6.1');
      return asked.includes(' /v2/') ? noPage : undefined;
    });
    const diagnosis = await diagnose(url, PATIENT);
    expect(diagnosis.code).toBe(1);
    expect(troubles(diagnosis)).toMatchObject([
      {
        about: 'v2',
        text: 'no v2 API: etcd 3.6 removed it',
        advice: matching(/^use --api v3, with a bridge if python-etcd .* etcd 3\.5 /),
      },
    ]);
  });
});

describe('clocks', () => {
  test('that differ by more than the margin are a failure', async () => {
    const url = await useAlteredMember((asked, answer) => other(asked, answer) ?? ahead(60)(asked, answer));
    const diagnosis = await diagnose([inject('etcd'), url], PATIENT);
    expect(diagnosis.code).toBe(1);
    // Other tests have locks in both stores of this etcd.
    expect(troubles(diagnosis).filter(({ about }) => about !== 'stores')).toMatchObject([
      {
        level: 'fail',
        about: 'clocks',
        text: matching(/differ by (5|6)\d\.\d s; the limit is 30/),
        advice: matching(/NTP/),
      },
    ]);
  });

  test('that differ by less than the margin are ok', async () => {
    const url = await useAlteredMember((asked, answer) => other(asked, answer) ?? ahead(-20)(asked, answer));
    const diagnosis = await diagnose([inject('etcd'), url], PATIENT);
    expect(diagnosis.code).toBe(0);
    expect(diagnosis.findings).toContainEqual(
      expect.objectContaining({ level: 'ok', about: 'clocks', text: matching(/differ by [12]\d\.\d s/) }),
    );
  });

  test('are read from the Date header if no key can be written', async () => {
    const refused = { status: 401, body: JSON.stringify({ errorCode: 110, message: 'no', cause: 'no', index: 0 }) };
    const url = await useAlteredMember((asked, answer) => {
      const skewed = ahead(60)(asked, answer);
      return asked.startsWith('POST ') ? { ...skewed, ...refused } : (other(asked, answer) ?? skewed);
    });
    const { code, findings, endpoints } = await diagnose([inject('etcd'), url], PATIENT);
    expect(code).toBe(1);
    expect(endpoints.map(({ clock }) => clock?.by)).toEqual(['test key', 'Date header']);
    expect(findings).toContainEqual(expect.objectContaining({ level: 'fail', about: 'clocks' }));
  });
});

test('another web server is not taken for an etcd', async () => {
  const page = { status: 200, headers: { 'content-type': 'text/html' }, body: '<html>Welcome</html>' };
  const diagnosis = await diagnose(await useAlteredMember(() => page));
  expect(diagnosis.code).toBe(1);
  expect(troubles(diagnosis)).toMatchObject([
    { about: 'v2', text: matching(/no v2 API: .*Welcome/), advice: matching(/no proxy in front of it/) },
  ]);
});

test.each([
  ['with locks', []],
  ['without locks', ['--lock-prefix', '/_none']],
])('a proxy that removes X-Etcd-Index is reported, %s', async (_, args) => {
  const { body } = await raw('POST', `/_locks/${freshName()}`, { value: 'u1', ttl: '60' });
  onTestFinished(async () => {
    await raw('DELETE', body.node.key);
  });
  const url = await useAlteredMember((_, { headers: { 'x-etcd-index': _dropped, ...headers } }) => ({ headers }));
  const diagnosis = await diagnose(url, [...PATIENT, ...args]);
  expect(diagnosis.code).toBe(1);
  expect(troubles(diagnosis)).toMatchObject([{ about: 'v2', text: matching(/no X-Etcd-Index/) }]);
});

test('a server that never completes a response is reported as not responding', async () => {
  const { url } = await serveSilence('HTTP/1.1 200 OK\r\ncontent-length: 20\r\n\r\n{"etcd');
  const diagnosis = await diagnose(url);
  expect(diagnosis.code).toBe(1);
  expect(troubles(diagnosis)).toMatchObject([
    { level: 'fail', about: 'reachable', text: matching(/does not respond/) },
  ]);
});

test('control characters in the name of a member are escaped', async () => {
  const url = await useAlteredMember((asked, { body }) =>
    asked.endsWith('/stats/self') ? { body: body.replace('"name":"m1"', '"name":"m\\u001b[2J"') } : undefined,
  );
  const { stdout } = await runCli(['doctor', '--endpoints', url, ...PATIENT]);
  expect(stdout).toContain('member m\\u001b[2J,');
  expect(stdout).not.toContain('\u001b');
});

/** Removes the leading zeros of in-order names, as in etcd before 2.2. */
const bare = (body: string): string => body.replace(/\/0+(\d+)"/g, '/$1"');
