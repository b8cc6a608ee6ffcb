import { orAborted } from '../../src/base/cancellation.ts';
import { V3Client } from '../../src/v3/client.ts';
import { decodeHeader, decodeText, Fields, type Json, unusable } from '../../src/v3/messages.ts';
import { base64 } from './gateway.ts';

export const CLUSTER = 'c1';
/** As etcd sends it. */
const CLUSTER_ID = String(BigInt(`0x${CLUSTER}`));

/** A key as etcd stores it. The revisions and the lease are decimal digits, as in etcd's answers. */
export interface StoredKey {
  readonly key: string;
  readonly value: string;
  readonly create_revision: string;
  readonly mod_revision: string;
  readonly lease?: string;
}

/** One request that a member got. */
export interface Asked {
  readonly path: string;
  readonly message: Json;
}

/**
 * The answers of a gateway that a test decides on: what is in a queue with at most two entries, and how keep-alives are answered. Nothing is sent, and no
 * time passes.
 */
export class ScriptedGateway {
  /** The requests so far. */
  readonly asked: Asked[] = [];
  /** The requests that began a watch, and a function that ends each stream with messages. */
  readonly watches: { readonly messages: readonly Json[]; readonly say: (text: string) => void }[] = [];
  /** The own key of the ticket under test: set by its append. */
  own: StoredKey | undefined;
  /** The key created right before the own one. */
  before: StoredKey | undefined;
  /** The TTL in the answers to keep-alives; 0: the lease is gone. */
  ttl = '30';
  revision = 10n;
  raftTerm = '1';
  clusterId = CLUSTER_ID;
  /** Called before each answer. */
  onAsked: (asked: Asked) => void = () => {};
  /** Increases with each request: requests are sent at 1 ms, 2 ms … */
  #now = 0;

  /** Returns a client whose requests all reach this gateway. */
  client(): V3Client {
    const client = new V3Client({ endpoints: 'http://scripted.test:2379' });
    const member: Parameters<Parameters<V3Client['call']>[2]>[0] = {
      url: 'http://scripted.test:2379',
      ask: async (path, message) => {
        this.asked.push({ path, message });
        this.#now += 1;
        const sentAt = this.#now;
        this.onAsked({ path, message });
        const { clusterId: cluster_id, raftTerm: raft_term } = this;
        const body = this.#answer(path, message);
        const wire = { status: 200, headers: {}, body: '', sentAt };
        const fields = new Fields(wire, {
          header: { cluster_id, revision: String(this.revision), raft_term },
          ...body,
        });
        const answer = { fields, header: decodeHeader(fields), sentAt, member: member.url };
        return { ...answer, unusable: (why: string) => unusable(wire, why) };
      },
      stream: (_, messages, onData, over) =>
        new Promise((_resolve, reject) => {
          const end = () => reject(over.reason);
          this.watches.push({
            messages,
            say: (text) => {
              onData(Buffer.from(text));
              if (over.aborted) end();
            },
          });
        }),
    };
    client.call = (_, { signal }, attempt) => (signal ? orAborted(attempt(member), signal) : attempt(member));
    Object.defineProperty(client, 'clusterId', { get: () => CLUSTER });
    return client;
  }

  /** The paths of the requests so far. */
  get paths(): readonly string[] {
    return this.asked.map(({ path }) => path);
  }

  #answer(path: string, message: Json): Json {
    if (path === '/lease/grant') return { ID: message['ID'], TTL: message['TTL'] };
    if (path === '/lease/keepalive') return { ID: message['ID'], TTL: this.ttl };
    if (path === '/kv/txn') return this.#transaction(message);
    return {};
  }

  #transaction({ compare, success }: { compare?: readonly Json[]; success?: readonly Json[] }): Json {
    if (compare) this.#append(success as readonly Json[]);
    const range = (...keys: readonly (StoredKey | undefined)[]) => {
      const kvs = keys.flatMap((key) => (key ? [encoded(key)] : []));
      return { response_range: { kvs, count: String(kvs.length) } };
    };
    if (compare) return { succeeded: true, responses: [{ response_put: {} }, range(this.own, this.before)] };
    const [own, ...others] = success ?? [];
    return { responses: [...(own ? [range(this.own)] : []), ...others.map(() => range(this.before))] };
  }

  #append([operation]: readonly Json[]): void {
    const put = (operation?.['request_put'] ?? {}) as Readonly<Record<'key' | 'value' | 'lease', string>>;
    this.revision += 1n;
    const revision = String(this.revision);
    this.own = {
      key: decodeText(put.key),
      value: decodeText(put.value),
      create_revision: revision,
      mod_revision: revision,
      lease: put.lease,
    };
  }
}

const encoded = ({ key, value, ...rest }: StoredKey): Json => ({ key: base64(key), value: base64(value), ...rest });
