// Locks inside the handlers of a web server, as a user runs them: in a plain Node process, with the built package.
import { describe, expect, inject, onTestFinished, test } from 'vitest';
import { closedEndpoint, serve } from '../support/clients.ts';
import { freshName, queueOn, raw } from '../support/locks.ts';
import { runScript } from '../support/script.ts';
import { answer } from '../support/tcp-server.ts';
import { rawAnswer } from '../support/v2-answers.ts';

/** Each defines `listen(handlers)`: serves each handler's result as JSON below its name; resolves to the server's URL. */
const frameworks = {
  'Express 5': `
    import { once } from 'node:events';
    import express from 'express';
    async function listen(handlers) {
      const app = express();
      for (const [name, handler] of Object.entries(handlers)) app.get('/' + name, async (_, res) => res.json(await handler()));
      const server = app.listen(0, '127.0.0.1');
      await once(server, 'listening');
      return 'http://127.0.0.1:' + server.address().port;
    }`,
  'Fastify 5': `
    import Fastify from 'fastify';
    async function listen(handlers) {
      const app = Fastify();
      for (const [name, handler] of Object.entries(handlers)) app.get('/' + name, handler);
      return app.listen({ port: 0, host: '127.0.0.1' });
    }`,
};

const SCRIPT = `
  import { EtcdClient, LockManager } from 'etcd-v2-lock';
  const { ETCD, NAME, TAKEN, FAILING } = process.env;
  const locks = new LockManager(new EtcdClient({ endpoints: ETCD }));
  const failing = Object.entries(JSON.parse(FAILING)).map(([name, endpoints]) => {
    const manager = new LockManager(new EtcdClient({ endpoints, username: 'app', password: 'wrong' }));
    return [name, () => manager.request(NAME, () => 'never')];
  });
  const url = await listen({
    held: () => locks.request(NAME, (held) => ({ held, token: String(held.fencingToken) })),
    bigint: () => locks.request(NAME, (held) => ({ token: held.fencingToken })),
    timeout: () => locks.request(TAKEN, { timeout: 0.1 }, () => 'never'),
    ...Object.fromEntries(failing),
  });
  const answers = {};
  for (const name of ['held', 'bigint', 'timeout', ...Object.keys(JSON.parse(FAILING))]) {
    const answer = await fetch(url + '/' + name);
    answers[name] = { status: answer.status, body: await answer.text() };
  }
  console.log(JSON.stringify(answers));
  process.exit();
`;

/** How etcd, or what answers in its place, refuses each request. */
const refusals = {
  'wrong-password': rawAnswer(401, { message: 'Insufficient credentials' }),
  forbidden: rawAnswer(403, '<html>'),
  'no-v2-api': rawAnswer(404, '404 page not found\n', { 'content-type': 'text/plain' }),
  'bad-gateway': rawAnswer(502, '<html>', {}),
};

describe.each(Object.entries(frameworks))('in a handler of %s', (_, listen) => {
  test('an uncaught lock error answers 500, whatever the HTTP status of etcd, and a hold can be sent as JSON', async () => {
    const urls = await Promise.all(Object.values(refusals).map(async (refusal) => (await serve(answer(refusal))).url));
    const failing = Object.fromEntries(Object.keys(refusals).map((name, i) => [name, urls[i]]));
    const [name, taken] = [freshName(), freshName()];
    await raw('POST', `/_locks/${taken}`, { value: 'another holder', ttl: '600' });
    onTestFinished(async () => void (await raw('DELETE', `/_locks/${taken}?recursive=true`)));
    const env = { ETCD: inject('etcd'), NAME: name, TAKEN: taken, FAILING: JSON.stringify(failing) };
    const { stdout, stderr } = await runScript(listen + SCRIPT, env);
    const { held, ...failed } = JSON.parse(stdout || JSON.stringify({ stderr })) as Record<
      string,
      { status: number; body: string }
    >;
    for (const [way, { status }] of Object.entries(failed)) expect([way, status]).toEqual([way, 500]);
    expect(Object.keys(failed)).toEqual(['bigint', 'timeout', ...Object.keys(failing)]);
    const { fencingToken: token, ...rest } = JSON.parse(held?.body ?? '').held;
    expect(held?.status).toBe(200);
    expect(rest).toEqual({ name, mode: 'exclusive', key: expect.any(String), uuid: expect.any(String) });
    expect(JSON.parse(held?.body ?? '').token).toBe(token);
    expect(token).toMatch(/^\d+$/);
    expect(await queueOn(name)).toEqual([]);
  });
});

test('Fastify’s logger and console.log print each member of an outage once', async () => {
  const endpoints = [await closedEndpoint(), await closedEndpoint()];
  const { stdout } = await runScript(
    `import Fastify from 'fastify';
    import { EtcdClient, LockManager } from 'etcd-v2-lock';
    const app = Fastify({ logger: true });
    const locks = new LockManager(new EtcdClient({ endpoints: JSON.parse(process.env.ENDPOINTS) }));
    const error = await locks.request('x', () => {}).catch((error) => error);
    app.log.error(error);
    console.log(error);`,
    { ENDPOINTS: JSON.stringify(endpoints) },
  );
  // The logger and the console write to stdout each on its own, in either order.
  const lines = stdout.trim().split('\n');
  const logged = lines.find((line) => line.startsWith('{"level"')) ?? '';
  const printed = lines.filter((line) => line !== logged);
  expect(JSON.parse(logged).err.type).toBe('EtcdConnectionFailed');
  for (const endpoint of endpoints) {
    expect(JSON.parse(logged).err.message.split(endpoint)).toHaveLength(2);
    expect(JSON.parse(logged).err.stack.split(endpoint)).toHaveLength(2);
    expect(printed.join('\n').split(endpoint)).toHaveLength(2);
  }
});
