import { type HttpConnections, HttpFailure, type HttpRequest, textOf } from './http.ts';

/** What python-etcd raises: `name` is that of its class. */
export class PythonError extends Error {
  constructor(name: string, message = '') {
    super(message);
    this.name = name;
  }
}

/** A node of etcd v2, as far as python-etcd's Lock looks at it. */
export interface V2Node {
  readonly key: string;
  readonly value?: string;
  readonly dir?: boolean;
  readonly nodes?: readonly V2Node[];
  readonly modifiedIndex: number;
}

export interface Executed {
  readonly node: V2Node;
  /** The time at which the request was sent that was answered. */
  readonly sentAt: number;
}

/** Sends a request of python-etcd; `timeout`: milliseconds, 0: none, `undefined`: that of the client. */
export type Execute = (method: string, path: string, body?: string, timeout?: number) => Promise<Executed>;

interface Answer {
  readonly status: number;
  readonly body: string;
  readonly sentAt: number;
}

/** How often urllib3 sends a request again. */
const RETRIES = 3;

/**
 * The `Client` of python-etcd 0.4.5, with `allow_reconnect=True`. A member that fails is left for another one, and **every** request is sent
 * again there, also one that may have been carried out.
 */
export class PythonClient {
  readonly #http: HttpConnections;
  readonly #readTimeout: number;
  #base: string;
  /** The other members. */
  #machines: string[];

  constructor(http: HttpConnections, [first = '', ...others]: readonly string[], readTimeout: number) {
    this.#http = http;
    this.#readTimeout = readTimeout;
    this.#base = first;
    this.#machines = others;
  }

  /** What its constructor does: it asks for all members. */
  async open(): Promise<void> {
    const machines = await this.#askForMachines();
    this.#machines = [...new Set([...this.#machines, ...machines])].filter((machine) => machine !== this.#base);
  }

  readonly execute: Execute = async (method, path, body, timeout = this.#readTimeout) => {
    const headers = body === undefined ? {} : { 'Content-Type': 'application/x-www-form-urlencoded' };
    const request = { method, path, headers, body, timeout: timeout || undefined };
    for (;;) {
      try {
        return resultOf(await this.#send(request));
      } catch (error) {
        if (!(error instanceof HttpFailure)) throw error;
      }
      const next = this.#machines.pop();
      if (next === undefined) throw new PythonError('EtcdConnectionFailed', 'No more machines in the cluster');
      this.#base = next;
      const machines = await this.#askForMachines();
      this.#machines = machines.filter((machine) => machine !== this.#base);
    }
  };

  /** As urllib3 does it: it sends again at once what could not be sent, and what is no POST also when no answer begins. */
  async #send(request: HttpRequest): Promise<Answer> {
    for (let left = RETRIES; ; left -= 1) {
      const response = await this.#http.send(this.#base, request).catch((error: HttpFailure) => {
        if (left === 0 || (request.method === 'POST' && error.during !== 'connect')) throw error;
      });
      if (response) return { status: response.status, body: await textOf(response), sentAt: response.sentAt };
    }
  }

  async #askForMachines(): Promise<string[]> {
    for (;;) {
      try {
        const { body } = await this.#send({ method: 'GET', path: '/v2/machines', timeout: this.#readTimeout });
        return body.split(',').map((machine) => machine.trim());
      } catch (error) {
        const next = this.#machines.shift();
        if (!(error instanceof HttpFailure) || next === undefined)
          throw new PythonError('EtcdException', 'Could not get the list of servers');
        this.#base = next;
      }
    }
  }
}

const ERRORS: Readonly<Record<number, string>> = {
  100: 'EtcdKeyNotFound',
  301: 'EtcdLeaderElectionInProgress',
  400: 'EtcdWatcherCleared',
  401: 'EtcdEventIndexCleared',
};

/** @throws {PythonError} for an answer that is an error */
export function resultOf({ status, body, sentAt }: Answer): Executed {
  const { node, errorCode, message } = JSON.parse(body) as { node?: V2Node; errorCode?: number; message?: string };
  if (status < 300 && node) return { node, sentAt };
  throw new PythonError(ERRORS[status === 404 ? 100 : (errorCode ?? 0)] ?? 'EtcdException', message);
}
