import { once } from 'node:events';
import http from 'node:http';
import { text } from 'node:stream/consumers';

/** Headers of an answer that a client of etcd may read. */
const HEADERS = ['Content-Type', 'X-Etcd-Cluster-Id', 'X-Etcd-Index'];

/** Starts a proxy that records each exchange of a scenario. */
export async function startRecorder(target) {
  const { hostname, port } = new URL(target);
  let scenario;

  const server = http.createServer(async (incoming, outgoing) => {
    const current = scenario;
    const { method, url: path, headers, socket } = incoming;
    current.start ??= performance.now();
    current.started ??= new Date().toISOString();
    if (!current.sockets.includes(socket)) current.sockets.push(socket);
    const seconds = () => Math.round(performance.now() - current.start) / 1000;
    const exchange = { at: seconds(), done: undefined };
    current.exchanges.push(exchange);
    const body = await text(incoming);
    exchange.request = { method, path, body: body || null, contentType: headers['content-type'] ?? null };
    exchange.connection = current.sockets.indexOf(socket) + 1;
    const forwarded = http.request({ hostname, port, method, path, headers, agent: false }).end(body);
    const [answer] = await once(forwarded, 'response');
    const { connection, ...passed } = answer.headers;
    // A poll has its headers long before its body.
    outgoing.writeHead(answer.statusCode, passed);
    outgoing.flushHeaders();
    const answered = await text(answer);
    exchange.done = seconds();
    exchange.response = {
      status: answer.statusCode,
      headers: Object.fromEntries(
        HEADERS.flatMap((name) => {
          const value = answer.headers[name.toLowerCase()];
          return value === undefined ? [] : [[name, value]];
        }),
      ),
      body: bodyOf(answered),
    };
    outgoing.end(answered);
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');

  return {
    url: `http://127.0.0.1:${server.address().port}`,
    begin() {
      scenario = { exchanges: [], sockets: [] };
    },
    /** Returns when the scenario started, and its exchanges in the order of their answers. */
    async end() {
      await until(() => scenario.exchanges.every(({ done }) => done !== undefined));
      const exchanges = scenario.exchanges.sort((one, other) => one.done - other.done).map(inOrder);
      return { started: scenario.started, exchanges };
    },
    /** Waits until that many requests of the scenario wait for an event. */
    polls: (count) =>
      until(
        () =>
          scenario.exchanges.filter(({ done, request }) => done === undefined && request?.path.includes('wait=true'))
            .length >= count,
      ),
    async stop() {
      server.close();
      server.closeAllConnections();
      await once(server, 'close');
    },
  };
}

const inOrder = ({ at, done, request, response, connection }) => ({ at, done, request, response, connection });

function bodyOf(answered) {
  try {
    return JSON.parse(answered);
  } catch {
    return answered;
  }
}

async function until(condition) {
  while (!condition()) await new Promise((resolve) => setTimeout(resolve, 20));
}
