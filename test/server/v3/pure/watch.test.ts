import { describe, expect, test } from 'vitest';
import type { StreamOutput } from '../../../../src/server/front/gateway.ts';
import { decoderOf } from '../../../../src/server/v3/gateway/decode.ts';
import { watch } from '../../../../src/server/v3/gateway/watch.ts';
import { V3Member } from '../../../../src/server/v3/member.ts';
import { ManualClock } from '../../../support/manual-clock.ts';
import { put } from '../requests.ts';

const TEN_MINUTES = 600_000;
const KEY_A = 'YQ==';

interface Answer {
  readonly created?: boolean;
  readonly canceled?: boolean;
  readonly watch_id?: string;
  readonly compact_revision?: string;
  readonly cancel_reason?: string;
  readonly events?: readonly { readonly kv: { readonly mod_revision: string } }[];
}

/** A client of a stream, which takes answers only while it is ready. */
class Client implements StreamOutput {
  isReady = true;
  readonly answers: Answer[] = [];
  #waiting: (() => void)[] = [];

  send(line: string): void {
    this.answers.push((JSON.parse(line) as { result: Answer }).result);
  }

  /** Throws instead of ending the stream. */
  fail(reason: unknown): void {
    throw reason;
  }

  /** Memory that the watches have. */
  taken = 0;
  memory = Number.POSITIVE_INFINITY;

  take(bytes: number): boolean {
    if (this.taken + bytes > this.memory) return false;
    this.taken += bytes;
    return true;
  }

  give(bytes: number): void {
    this.taken -= bytes;
  }

  ready(): Promise<void> {
    return new Promise((resolve) => this.#waiting.push(resolve));
  }

  /** Takes answers again. Resolves when the server knows. */
  async resume(): Promise<void> {
    this.isReady = true;
    for (const resolve of this.#waiting.splice(0)) resolve();
    await Promise.resolve();
  }

  get revisions(): string[] {
    return this.answers.flatMap(({ events = [] }) => events.map(({ kv }) => kv.mod_revision));
  }
}

function open(requests: readonly object[], { history = 10_000, memory = Number.POSITIVE_INFINITY } = {}) {
  const clock = new ManualClock();
  const [clusterId, memberId] = [1n, 2n];
  const member = new V3Member({ clusterId, memberId, name: '', clientURLs: [], version: '3.4', clock, history });
  const client = new Client();
  client.memory = memory;
  const body = requests.map((request) => JSON.stringify(request)).join('');
  const end = watch(body, { member, token: undefined, decode: decoderOf('3.4') }).open(client);
  const write = (times = 1) => {
    for (let i = 0; i < times; i += 1) member.store.put(put({ key: 'a' }));
  };
  return { clock, member, client, end, write };
}

const create = (options: object = {}) => ({ create_request: { key: KEY_A, ...options } });

describe('a report of progress', () => {
  test('comes every ten minutes to a watch that wants it and had no events', () => {
    const { clock, client, write } = open([create({ progress_notify: true }), create()]);
    const reports = () => client.answers.filter(({ created, events }) => !created && !events);
    clock.advance(TEN_MINUTES - 1);
    expect(reports()).toEqual([]);
    clock.advance(1);
    expect(reports()).toHaveLength(1);
    write();
    clock.advance(TEN_MINUTES);
    expect(reports()).toHaveLength(1);
    clock.advance(TEN_MINUTES);
    expect(reports()).toHaveLength(2);
  });

  test('does not come after the end of the stream, which leaves no timer', () => {
    const { clock, end } = open([create({ progress_notify: true })]);
    end();
    expect(clock.outstanding).toBe(0);
  });
});

describe('a client that takes nothing', () => {
  test('gets the events it has missed when it takes answers again', async () => {
    const { client, write } = open([create()]);
    write();
    client.isReady = false;
    write(3);
    expect(client.revisions).toEqual(['2']);
    await client.resume();
    expect(client.revisions).toEqual(['2', '3', '4', '5']);
    write();
    expect(client.revisions).toEqual(['2', '3', '4', '5', '6']);
  });

  test('is told that its watch is canceled if the events it has missed were compacted', async () => {
    const { client, member, write } = open([create({ watch_id: '5' })], { history: 10 });
    client.isReady = false;
    write(50);
    await client.resume();
    expect(client.revisions).toEqual([]);
    expect(client.answers.at(-1)).toMatchObject({
      watch_id: '5',
      canceled: true,
      compact_revision: String(member.store.compacted),
    });
    write();
    expect(client.revisions).toEqual([]);
  });

  test('misses no event that comes while it catches up', async () => {
    const { client, write } = open([create()]);
    client.isReady = false;
    write(2500);
    const { send } = client;
    let sent = 0;
    client.send = (line) => {
      send.call(client, line);
      sent += 1;
      if (sent === 1) client.isReady = false;
    };
    await client.resume();
    write();
    await client.resume();
    await client.resume();
    expect(client.revisions).toEqual(Array.from({ length: 2501 }, (_, i) => String(i + 2)));
  });

  test('gets large events a few at a time', async () => {
    const { client, member } = open([create()]);
    client.isReady = false;
    for (let i = 0; i < 20; i += 1) member.store.put(put({ key: 'a', value: 'x'.repeat(2 ** 20) }));
    await client.resume();
    expect(client.revisions).toHaveLength(20);
    for (const { events = [] } of client.answers) expect(events.length).toBeLessThanOrEqual(2);
  });

  test('with several watches gets events of each in turn, when it takes one answer at a time', async () => {
    const { client, write } = open([create(), create(), create()]);
    client.answers.length = 0;
    const { send } = client;
    client.send = (line) => {
      send.call(client, line);
      client.isReady = false;
    };
    client.isReady = false;
    for (let i = 0; i < 9; i += 1) {
      write();
      await client.resume();
    }
    const answersTo = (id: string | undefined) => client.answers.filter((answer) => answer.watch_id === id).length;
    expect([undefined, '1', '2'].map(answersTo)).toEqual([3, 3, 3]);
  });
});

describe('the memory of a watch', () => {
  test('is returned when the client cancels the watch, and at the end of the stream', () => {
    const { client, end } = open([create(), create({ watch_id: '5' }), create()]);
    const all = client.taken;
    expect(all).toBeGreaterThan(0);
    const other = open([create(), create({ watch_id: '5' }), create(), { cancel_request: { watch_id: '5' } }]);
    expect(other.client.taken).toBe((all / 3) * 2);
    for (const each of [end, other.end]) each();
    expect([client.taken, other.client.taken]).toEqual([0, 0]);
  });

  test('is refused if there is none, and the others go on', () => {
    const { client, write } = open([create(), create()], { memory: 1500 });
    expect(client.answers[1]?.cancel_reason).toMatch(/^limit of memory .* reached/);
    write();
    expect(client.revisions).toEqual(['2']);
  });
});
