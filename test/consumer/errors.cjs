// An uncaught lock error answers 500 in Express and Fastify, and a hold can be sent as JSON.
const assert = require('node:assert/strict');
const { createServer } = require('node:http');
const { once } = require('node:events');
const express = require('express');
const fastify = require('fastify');
const {
  EtcdClient,
  EtcdConnectionFailed,
  EtcdInsufficientPermissions,
  EtcdLockTimeout,
  LockManager,
} = require('etcd-v2-lock');

const name = `errors-${process.version}-${process.pid}`;

/** Asks Express and Fastify for the answer of this handler. Returns both answers. */
async function answersOf(handler) {
  const app = express();
  app.get('/', async (_, response) => response.json(await handler()));
  // Express prints uncaught errors on stderr by default.
  app.set('env', 'test');
  const server = app.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const other = fastify();
  other.get('/', handler);
  const urls = [`http://127.0.0.1:${server.address().port}`, await other.listen({ host: '127.0.0.1', port: 0 })];
  const answers = await Promise.all(
    urls.map((url) => fetch(url).then(async (answer) => [answer.status, await answer.text()])),
  );
  server.close();
  server.closeAllConnections();
  await other.close();
  return answers;
}

/** Whether a lock request fails with this class, and Express and Fastify answer with 500. */
async function check(locks, ErrorClass, timeout) {
  const request = () => locks.request(name, { timeout }, () => 'ran');
  await assert.rejects(request, (error) => error instanceof ErrorClass && error.status === undefined);
  for (const [status] of await answersOf(request)) assert.equal(status, 500);
}

async function main() {
  const client = new EtcdClient({ endpoints: process.env.ETCD_ENDPOINTS });
  const locks = new LockManager(client);
  const held = await locks.acquire(name);
  for (const [status, body] of await answersOf(async () => held)) {
    assert.equal(status, 200);
    assert.equal(JSON.parse(body).fencingToken, String(held.fencingToken));
  }
  await check(new LockManager(client), EtcdLockTimeout, 0.5);
  assert.equal(EtcdLockTimeout.prototype instanceof EtcdConnectionFailed, false);
  await held.release();
  await client.close();

  // A wrong password: etcd answers 401.
  const denying = createServer((_, response) => response.writeHead(401).end('{"message":"Insufficient credentials"}'));
  denying.listen(0, '127.0.0.1');
  await once(denying, 'listening');
  const denied = new EtcdClient({
    endpoints: `http://127.0.0.1:${denying.address().port}`,
    username: 'app',
    password: 'wrong',
  });
  await check(new LockManager(denied), EtcdInsufficientPermissions, 5);
  await denied.close();
  denying.close();
  denying.closeAllConnections();
}

void main();
