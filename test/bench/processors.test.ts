import { expect, test } from 'vitest';
import { runScript } from '../support/script.ts';

/** Tells the processors that it was kept to, those of a child, and those of a child that was to have the others. */
const SCRIPT = `
  import { execFileSync } from 'node:child_process';
  import { readFileSync } from 'node:fs';
  import { keepApart, runOn } from './bench/setting/processors.mjs';
  const listIn = (status) => /^Cpus_allowed_list:\\s*(\\S+)$/m.exec(status)[1];
  const listOf = (processors) => listIn(execFileSync(...runOn(processors, 'cat', ['/proc/self/status']), { encoding: 'utf8' }));
  const before = listIn(readFileSync('/proc/self/status', 'utf8'));
  const apart = keepApart();
  const own = listIn(readFileSync('/proc/self/status', 'utf8'));
  console.log(JSON.stringify({ before, apart, own, child: listOf(), server: listOf(apart?.servers), onAll: listOf(apart?.all) }));
`;

/** What Linux writes as ranges, one by one. */
const each = (list: string): number[] =>
  list.split(',').flatMap((range) => {
    const [first = 0, last = first] = range.split('-').map(Number);
    return Array.from({ length: last - first + 1 }, (_, i) => first + i);
  });

test('etcd and its clients have halves of the processors; where there is one, they share it', async () => {
  const { code, stdout, stderr } = await runScript(SCRIPT);
  expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
  const { before, apart, own, child, server, onAll } = JSON.parse(stdout);
  expect(each(onAll)).toEqual(each(before));
  if (apart === undefined) {
    expect([own, child, server]).toEqual([before, before, before]);
    return;
  }
  expect(each(own)).toEqual(each(apart.clients));
  expect(each(child)).toEqual(each(apart.clients));
  expect(each(server)).toEqual(each(apart.servers));
  expect([...each(server), ...each(own)]).toEqual(each(before));
});
