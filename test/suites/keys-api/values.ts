import { describe, expect } from 'vitest';
import { EtcdCompareFailed } from '../../../src/errors.ts';
import { rejection } from '../../support/clients.ts';
import { expectMissing, keysOf, type StoreTest } from './store.ts';

const VALUES = [
  ['of one letter', 'v'],
  ['that are numbers', '0042'],
  ['with spaces around them', '  v  '],
  ['with line breaks', 'a\nb\r\nc\td'],
  ['with control characters', '\0\x01\x1b\x7f'],
  ['beyond ASCII', 'ü é 中 ß'],
  ['beyond the Basic Multilingual Plane', '🔒 𝄞'],
  ['in two Unicode normal forms', 'e\u0301 é'],
  ['with line separators', '\u2028\u2029\ufeff'],
  ['that look like a form', 'a=1&b=2+3%41;c'],
  ['that look like JSON', '{"errorCode":100,"x":"\\"<>&"}'],
  ['of 1 kB', 'é'.repeat(500)],
] as const;

const LONG = 'é'.repeat(50_000);

const NAMES = [
  'with space',
  ' spaces around ',
  'umläut',
  '中文',
  '🔒',
  'e\u0301',
  'plus+sign',
  'amp&equals=',
  'what?x=1#y',
  'percent%41',
  'slash%2Fescaped',
  'semi;colon:at@',
  'quotes\'"`',
  'back\\slash',
  '[x]{y}|^<z>',
  '~!*(),$',
  '...',
  '-',
  'line\nend\ttab',
  '\0\x1b\x7f',
  '\u2028\ufeff',
  'x'.repeat(255),
];

export function values(test: StoreTest): void {
  describe('values', () => {
    test.for(VALUES)('%s are returned unchanged', async ([, value], { keys, dir }) => {
      const { node } = await keys.set(`${dir}/f`, value);
      expect(node.value).toBe(value);
      const entry = await keys.createInOrder(`${dir}/q`, value);
      expect((await keys.get(`${dir}/f`)).node.value).toBe(value);
      expect((await keys.get(entry.node.key)).node.value).toBe(value);
      expect((await keys.watch(`${dir}/f`, { after: node.modifiedIndex - 1 }))?.node.value).toBe(value);
    });

    test.for(VALUES)('%s match only the same prevValue', async ([, value], { keys, dir }) => {
      const { node } = await keys.set(`${dir}/f`, value);
      await rejection(keys.delete(`${dir}/f`, { prevValue: `${value}.` }), EtcdCompareFailed);
      const renewed = await keys.renew(`${dir}/f`, { prevValue: value, prevIndex: node.modifiedIndex, ttl: 60 });
      expect(renewed.node.value).toBe(value);
      expect((await keys.set(`${dir}/f`, value, { prevValue: value })).action).toBe('compareAndSwap');
      expect((await keys.delete(`${dir}/f`, { prevValue: value })).prevNode?.value).toBe(value);
    });

    test('of 100 kB are returned unchanged, and match only the same prevValue', async ({ keys, dir }) => {
      const { node } = await keys.createInOrder(dir, LONG);
      const { key, modifiedIndex: prevIndex } = node;
      expect((await keys.get(key)).node.value).toBe(LONG);
      await rejection(keys.set(key, 'w', { prevValue: `${LONG}.` }), EtcdCompareFailed);
      expect((await keys.renew(key, { prevValue: LONG, prevIndex, ttl: 60 })).node.value).toBe(LONG);
      expect((await keys.set(key, 'w', { prevValue: LONG })).prevNode?.value).toBe(LONG);
    });

    test('that are empty are returned unchanged, and can be compared by index', async ({ keys, dir }) => {
      const { node } = await keys.set(`${dir}/f`, '');
      expect(node.value).toBe('');
      expect((await keys.get(`${dir}/f`)).node.value).toBe('');
      const gone = await keys.delete(`${dir}/f`, { prevIndex: node.modifiedIndex });
      expect(gone).toMatchObject({ action: 'compareAndDelete', prevNode: { value: '' } });
    });
  });

  describe('names', () => {
    test.for(NAMES)('%j can be the name of a file, a directory and a queue', async (name, { keys, dir }) => {
      const file = await keys.set(`${dir}/f/${name}`, 'v');
      expect(file.node.key).toBe(`${dir}/f/${name}`);
      expect((await keys.get(`${dir}/f/${name}`)).node).toEqual(file.node);
      expect((await keys.get(`${dir}/f`)).node.nodes).toEqual([file.node]);
      const event = await keys.watch(`${dir}/f/${name}`, { after: file.node.modifiedIndex - 1 });
      expect(event?.node).toEqual(file.node);
      const entry = await keys.createInOrder(`${dir}/${name}/q`, 'w');
      expect(keysOf((await keys.get(`${dir}/${name}`)).node.nodes)).toEqual([`${dir}/${name}/q`]);
      expect((await keys.get(`${dir}/${name}/q`)).node.nodes).toEqual([entry.node]);
      await keys.delete(`${dir}/f/${name}`, { prevValue: 'v' });
      await expectMissing(keys, `${dir}/f/${name}`);
    });

    test('that differ in a single character are different keys', async ({ keys, dir }) => {
      const alike = ['a', 'A', 'a ', 'a+', 'a%20', 'é', 'e\u0301', '%C3%A9'];
      for (const name of alike) await keys.set(`${dir}/${name}`, name);
      const { node } = await keys.get(dir);
      expect(new Map(node.nodes.map(({ key, value }) => [key, value]))).toEqual(
        new Map(alike.map((name) => [`${dir}/${name}`, name])),
      );
    });

    test('may have 30 levels', async ({ keys, dir }) => {
      const key = `${dir}/${Array.from({ length: 30 }, (_, i) => `level${i}`).join('/')}`;
      const { node } = await keys.set(key, 'v');
      expect((await keys.get(key)).node).toEqual(node);
    });
  });
}
