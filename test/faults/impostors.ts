import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { connect, createServer, type Server, type Socket } from 'node:net';
import tls from 'node:tls';
import { onTestFinished } from 'vitest';
import { freePorts } from '../support/ports.ts';
import { httpAnswer } from '../support/tcp-server.ts';

/** Endpoints that are no etcd members. Each function starts one, resolves to its URL, and stops it after the test. */
export const IMPOSTORS: Readonly<Record<string, () => Promise<string>>> = {
  'a TLS server': () => listen(tls.createServer()),
  'a web server': () => answerAlways(httpAnswer(405, { 'content-type': 'text/html' }, '<h1>405 Not Allowed</h1>')),
  'a server without TLS at an https URL': async () =>
    (await answerAlways(httpAnswer(400, {}, ''))).replace('http:', 'https:'),
  'a web server that redirects': () => answerAlways(httpAnswer(302, { location: 'https://login.example.org/' }, '')),
  'a proxy without its server': () =>
    answerAlways(httpAnswer(502, { 'content-type': 'text/html' }, '<h1>502 Bad Gateway</h1>')),
  'an SSH server': () => listen(createServer((socket) => socket.write('SSH-2.0-OpenSSH_9.6\r\n'))),
  'a server that closes every connection': () => listen(createServer((socket) => socket.end())),
  'a server that never answers': () => listen(createServer()),
  'a closed port': closed,
  'an address that drops connection requests': dropping,
  'a host name that does not exist': async () => 'http://no-such-host.invalid:2379',
};

/** Starts a server that answers 200 to everything, as in a network that requires a login first. */
export const portal = (): Promise<string> =>
  answerAlways(httpAnswer(200, { 'content-type': 'text/html' }, '<!doctype html><title>Welcome</title>'));

async function closed(): Promise<string> {
  const [port] = await freePorts(1);
  return `http://127.0.0.1:${port}`;
}

/** Starts a server that answers everything with the same bytes. */
const answerAlways = (answer: string): Promise<string> =>
  listen(createServer((socket) => socket.on('data', () => socket.write(answer))));

async function listen(server: Server): Promise<string> {
  const sockets = new Set<Socket>();
  server.on('connection', (socket: Socket) => {
    sockets.add(socket);
    socket.on('error', () => {}).on('close', () => sockets.delete(socket));
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  onTestFinished(async () => {
    const gone = once(server, 'close');
    server.close();
    for (const socket of sockets) socket.destroy();
    await gone;
  });
  const address = server.address();
  return `http://127.0.0.1:${typeof address === 'object' && address?.port}`;
}

/** A program that listens and never accepts. */
const BLOCKED = `
  require('node:net').createServer().listen({ port: 0, host: '127.0.0.1', backlog: 1 }, function () {
    require('node:fs').writeSync(1, String(this.address().port));
    Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0);
  });`;

/** Connecting hangs, as with a firewall that drops packets: the backlog of a server that never accepts is full. */
async function dropping(): Promise<string> {
  const child = spawn(process.execPath, ['--eval', BLOCKED], { stdio: ['ignore', 'pipe', 'inherit'] });
  onTestFinished(() => void child.kill('SIGKILL'));
  const [port] = (await once(child.stdout, 'data')) as [Buffer];
  const fill = Array.from({ length: 8 }, () => connect(Number(port), '127.0.0.1').on('error', () => {}));
  onTestFinished(() => {
    for (const socket of fill) socket.destroy();
  });
  await Promise.race(fill.map((socket) => once(socket, 'connect')));
  return `http://127.0.0.1:${port}`;
}
