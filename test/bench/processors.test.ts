import { expect, test } from 'vitest';
import { runScript } from '../support/script.ts';

/** Prints the allowed processors of this process before and after `keepApart()`, and those of children on each list. */
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

/** Expands a list of ranges such as `0-3,8`. */
const each = (list: string): number[] =>
  list.split(',').flatMap((range) => {
    const [first = 0, last = first] = range.split('-').map(Number);
    return Array.from({ length: last - first + 1 }, (_, i) => first + i);
  });

test('etcd and its clients get half of the processors each, or share a single one', async () => {
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
