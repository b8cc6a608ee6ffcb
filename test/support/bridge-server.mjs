// Prints the URL of a Bridge to the etcd v3 given. Exits when stdin closes: the parent process is done, or has exited.
import { Bridge } from 'etcd-v2-lock/server';

const bridge = await Bridge.start({ endpoints: process.argv[2] });
process.stdout.write(`${bridge.url}\n`);
process.stdin.resume().once('close', () => process.exit());
