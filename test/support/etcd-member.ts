import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { dirname } from 'node:path';
import { onPath } from '../../scripts/find.mjs';
import { removeDataDir } from './data-dir.ts';
import { statOf } from './processes.ts';
import { tied } from './tied.ts';
import { until } from './until.ts';

export interface MemberSpec {
  /** etcd's whole command line, without the program. */
  readonly args: readonly string[];
  readonly url: string;
  readonly peerUrl: string;
  readonly dataDir: string;
  /** A server without the v2 API, to start instead of the etcd on the PATH. */
  readonly program?: string | undefined;
}

export interface RestartOptions {
  /** Whether to wait until it is ready. Default true; false for instance when there is no quorum. */
  readonly wait?: boolean;
  /** Another server, without the v2 API, for this and all later starts. */
  readonly program?: string | undefined;
  /** Arguments to remove from the command line permanently. */
  readonly without?: readonly string[];
  /** Arguments to append to the command line permanently. */
  readonly args?: readonly string[];
  /** Runs while the process is stopped. */
  readonly whileStopped?: () => void | Promise<void>;
}

/** The process exited before it answered; the message contains the end of its log. */
export class EtcdDied extends Error {
  readonly portTaken: boolean;

  constructor(args: readonly string[], log: string) {
    super(`etcd ${args.join(' ')}\nexited before it was ready:\n${log}`);
    this.portTaken = log.includes('address already in use');
  }
}

const alive = new Set<EtcdMember>();
process.on('exit', () => {
  for (const member of alive) member.abandon();
});

/** One real etcd process. It keeps its ports and its data when restarted. */
export class EtcdMember {
  readonly url: string;
  readonly peerUrl: string;
  readonly dataDir: string;
  #program: string | undefined;
  #args: readonly string[];
  #process: ChildProcess;
  #log = '';
  #paused = false;

  constructor(spec: MemberSpec) {
    this.url = spec.url;
    this.peerUrl = spec.peerUrl;
    this.dataDir = spec.dataDir;
    this.#program = spec.program;
    this.#args = spec.args;
    this.#process = this.#spawn();
    alive.add(this);
  }

  /** Whether it was started with the v2 API. */
  get hasV2(): boolean {
    return this.#program === undefined;
  }

  get process(): ChildProcess {
    return this.#process;
  }

  get pid(): number | undefined {
    return this.#process.pid;
  }

  get running(): boolean {
    return this.#process.exitCode === null && this.#process.signalCode === null;
  }

  get paused(): boolean {
    return this.#paused;
  }

  /** Waits until the member is healthy and a write through it, which needs a quorum, succeeds. */
  async ready(): Promise<void> {
    await until(
      () => this.#answers(),
      (ready) => ready,
      { every: 20 },
    );
  }

  /** The version of the running server, such as `3.4.23`. */
  async version(): Promise<string> {
    const { etcdserver } = (await (await fetch(`${this.url}/version`)).json()) as { etcdserver: string };
    return etcdserver;
  }

  /** Resolves once the process is stopped: on a busy machine it keeps running for a while after the signal was sent. */
  async pause(): Promise<void> {
    this.#paused = true;
    const { pid } = this.#process;
    this.#process.kill('SIGSTOP');
    await until(() => !this.running || (pid !== undefined && statOf(pid)?.state === 'T'), Boolean);
  }

  resume(): void {
    this.#paused = false;
    this.#process.kill('SIGCONT');
  }

  /** Kills the process, as a crash would. The data stays for `restart`. */
  async kill(): Promise<void> {
    await this.#end('SIGKILL');
  }

  /** Starts the process again. */
  async restart(options: RestartOptions = {}): Promise<void> {
    const { wait = true, program = this.#program, without = [], args = [], whileStopped } = options;
    await this.#end('SIGTERM');
    await whileStopped?.();
    this.#program = program;
    this.#args = [...this.#args.filter((arg) => !without.includes(arg)), ...args];
    this.#process = this.#spawn();
    alive.add(this);
    if (wait) await this.ready();
  }

  /** Kills the process and removes its data. `restart` then starts it empty, with these further arguments. */
  async wipe(args: readonly string[] = []): Promise<void> {
    await this.kill();
    removeDataDir(this.dataDir);
    this.#args = [...this.#args, ...args];
  }

  /** Shuts the process down with SIGTERM and removes its data. */
  async stop(): Promise<void> {
    await this.#end('SIGTERM');
    removeDataDir(this.dataDir);
    alive.delete(this);
  }

  /** Kills the process without waiting, for the exit of this process. */
  abandon(): void {
    this.#process.kill('SIGKILL');
    removeDataDir(this.dataDir);
  }

  async #end(signal: 'SIGTERM' | 'SIGKILL'): Promise<void> {
    if (!this.running) return;
    const exited = once(this.#process, 'exit');
    this.resume();
    this.#process.kill(signal);
    const killer = setTimeout(() => this.#process.kill('SIGKILL'), 3_000);
    await exited;
    clearTimeout(killer);
  }

  #spawn(): ChildProcess {
    const etcd = this.#program ?? findEtcd();
    this.#log = '';
    this.#paused = false;
    const [program, ...args] = tied([etcd, ...this.#args]);
    const child = spawn(program, args, {
      // etcd 3.4 has only relative paths of Unix sockets.
      cwd: dirname(this.dataDir),
      stdio: ['ignore', 'ignore', 'pipe'],
      env: withoutEtcdSettings(process.env),
    });
    child.stderr?.setEncoding('utf8').on('data', (text: string) => {
      this.#log = (this.#log + text).slice(-8_000);
    });
    return child;
  }

  async #answers(): Promise<boolean> {
    if (!this.running) throw new EtcdDied(this.#args, this.#log);
    try {
      const signal = AbortSignal.timeout(10_000);
      const health = (await (await fetch(`${this.url}/health`, { signal })).json()) as { health?: string };
      if (health.health !== 'true') return false;
      const write = await this.#write(signal);
      await write.text();
      // A server without the gateway: its health has needed a quorum.
      return write.ok || write.status === 404;
    } catch {
      return false;
    }
  }

  #write(signal: AbortSignal): Promise<Response> {
    if (this.hasV2) {
      const body = new URLSearchParams({ value: '1' });
      return fetch(`${this.url}/v2/keys/_ready`, { method: 'PUT', body, signal });
    }
    const put = { key: Buffer.from('_ready').toString('base64'), value: '' };
    return fetch(`${this.url}/v3/kv/put`, { method: 'POST', body: JSON.stringify(put), signal });
  }
}

export function findEtcd(): string {
  const [etcd] = onPath('etcd');
  if (etcd === undefined) throw new Error('etcd not found: apt-get install etcd-server');
  return etcd;
}

// etcd reads ETCD_* as options, and does not start if they contradict its command line.
function withoutEtcdSettings(env: NodeJS.ProcessEnv): NodeJS.ProcessEnv {
  return Object.fromEntries(Object.entries(env).filter(([name]) => !name.startsWith('ETCD_')));
}
