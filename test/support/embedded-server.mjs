// Prints the URL of an EmbeddedEtcd. Exits when stdin closes: the parent process is done, or has exited.
import { EmbeddedEtcd } from 'etcd-v2-lock/server';

const etcd = await EmbeddedEtcd.start();
process.stdout.write(`${etcd.url}\n`);
process.stdin.resume().once('close', () => process.exit());
