// The proxy's process: `relay.mjs HOST PORT DELAY_MS`. Forwards bytes in order, DELAY_MS later in each direction, and counts.
import { connect, createServer } from 'node:net';
import { Pacer } from './pacer.mjs';
import { Tally } from './tally.mjs';

const [host, port, delay] = process.argv.slice(2);
const tally = new Tally();
const pacer = new Pacer(Number(delay));

const server = createServer({ noDelay: true, allowHalfOpen: true }, (client) => {
  const etcd = connect({ host, port: Number(port), noDelay: true, allowHalfOpen: true });
  const counted = tally.connection();
  client.on('data', (chunk) => {
    counted.request(chunk);
    pacer.pass(() => etcd.write(chunk));
  });
  etcd.on('data', (chunk) =>
    pacer.pass(() => {
      counted.answer(chunk);
      client.write(chunk);
    }),
  );
  client.on('end', () => pacer.pass(() => etcd.end()));
  etcd.on('end', () => pacer.pass(() => client.end()));
  client.on('close', () => {
    counted.closed();
    pacer.pass(() => etcd.destroy());
  });
  etcd.on('close', () => pacer.pass(() => client.destroy()));
  // After a reset by one side, 'close' closes the other.
  client.on('error', () => {});
  etcd.on('error', () => {});
});

server.listen(0, '127.0.0.1', 4096, () => process.send({ port: server.address().port }));
process.on('message', () => process.send({ taken: tally.take() }));
// The parent has exited.
process.on('disconnect', () => process.exit());
