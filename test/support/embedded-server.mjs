// Prints the url of an EmbeddedEtcd, and ends with its stdin: then whoever started it is done, or gone.
import { EmbeddedEtcd } from 'etcd-v2-lock/server';

const etcd = await EmbeddedEtcd.start();
process.stdout.write(`${etcd.url}\n`);
process.stdin.resume().once('close', () => process.exit());
