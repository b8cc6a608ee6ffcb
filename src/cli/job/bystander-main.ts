// Stands in the process group of `run`, and tells on request which signals it was sent: those went to the whole group.
import { createInterface } from 'node:readline';
import { RELAYED, type Relayed } from './relayed.ts';

// `pkill -f etcd-v2-lock` and `killall node` are not for it: it would take them for signals to the group.
process.title = 'lock-bystander';

let seen: Relayed[] = [];
for (const signal of RELAYED) process.on(signal, () => seen.push(signal));

// A signal that came before the line may be found one turn of the loop after it.
createInterface(process.stdin).on('line', () => setImmediate(() => setImmediate(report)));

function report(): void {
  process.stdout.write(`${seen.join(' ')}\n`);
  seen = [];
}
