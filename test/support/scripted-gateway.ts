import { orAborted } from '../../src/base/cancellation.ts';
import { V3Client } from '../../src/v3/client.ts';
import type { AskedMember } from '../../src/v3/gateway/gateway.ts';
import { decodeHeader, decodeText, Fields, type Json, unusable } from '../../src/v3/gateway/messages.ts';
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
 * A gateway whose answers a test decides on: what is in the queue of one ticket, and how keep-alives are answered. Nothing is sent, and no
 * time passes.
 */
export class ScriptedGateway {
  /** The requests so far. */
  readonly asked: Asked[] = [];
  /** The requests that began a watch, and a function that ends each stream with messages. */
  readonly watches: { readonly messages: readonly Json[]; readonly say: (text: string) => void }[] = [];
  /** The own key of the ticket under test: set by its append. */
  own: StoredKey | undefined;
  /** The keys created before the own one, the nearest first. */
  ahead: readonly StoredKey[] = [];
  /** The TTL in the answers to keep-alives; 0: the lease is gone. */
  ttl = '30';
  revision = 10n;
  raftTerm = '1';
  clusterId = CLUSTER_ID;
  /** Called before each answer. */
  onAsked: (asked: Asked) => void = () => {};
  /** When a request is sent: milliseconds. By default 1, 2 … */
  clock = (): number => {
    this.#sent += 1;
    return this.#sent;
  };
  #sent = 0;

  /** Returns a client whose requests all reach this gateway. */
  client(): V3Client {
    const client = new V3Client({ endpoints: 'http://scripted.test:2379' });
    const member: AskedMember = {
      url: 'http://scripted.test:2379',
      ask: async (path, message) => {
        this.asked.push({ path, message });
        const sentAt = this.clock();
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
    client.gateway.call = (_, { signal }, attempt) => (signal ? orAborted(attempt(member), signal) : attempt(member));
    Object.defineProperty(client.gateway, 'clusterId', { get: () => CLUSTER });
    return client;
  }

  /** The paths of the requests so far. */
  get paths(): readonly string[] {
    return this.asked.map(({ path }) => path);
  }

  #answer(path: string, message: Json): Json {
    if (path === '/lease/grant') return { ID: message['ID'], TTL: message['TTL'] };
    if (path === '/lease/keepalive') return { ID: message['ID'], TTL: this.ttl };
    if (path === '/kv/range') return this.#range(this.own, ...this.ahead);
    if (path === '/kv/deleterange') this.own = undefined;
    if (path === '/kv/txn') return this.#transaction(message as Transaction);
    return {};
  }

  /** Conditions are taken as met: a test changes what the queue has between two requests, and not during one. */
  #transaction({ compare = [], success = [] }: Transaction): Json {
    const [operation] = success;
    if (operation?.request_delete_range) {
      this.own = undefined;
      return { succeeded: true, responses: [{ response_delete_range: {} }] };
    }
    if (!operation?.request_put) {
      const responses = success.map((_, i) => this.#range(i === 0 ? this.own : this.ahead[0]));
      return { responses: responses.map((response_range) => ({ response_range })) };
    }
    const isAppend = compare[0]?.create_revision === '0';
    this.#put(operation.request_put, isAppend);
    const newest = { response_range: this.#range(this.own, ...this.ahead) };
    return { succeeded: true, responses: [{ response_put: {} }, ...(isAppend ? [newest] : [])] };
  }

  #put({ key, value, lease }: Put, isAppend: boolean): void {
    this.revision += 1n;
    const mod_revision = String(this.revision);
    const create_revision = isAppend ? mod_revision : (this.own?.create_revision ?? mod_revision);
    this.own = { key: decodeText(key), value: decodeText(value), create_revision, mod_revision, lease };
  }

  #range(...keys: readonly (StoredKey | undefined)[]): Json {
    const kvs = keys.flatMap((key) => (key ? [encoded(key)] : []));
    return { kvs, count: String(kvs.length) };
  }
}

type Put = Readonly<Record<'key' | 'value' | 'lease', string>>;

/** The parts of a transaction that decide on its answer. */
interface Transaction {
  readonly compare?: readonly { readonly create_revision?: string }[];
  readonly success?: readonly { readonly request_put?: Put; readonly request_delete_range?: Json }[];
}

const encoded = ({ key, value, ...rest }: StoredKey): Json => ({ key: base64(key), value: base64(value), ...rest });
