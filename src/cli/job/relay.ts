import { isEnding } from '../signals.ts';
import type { ProcessTree } from './processes/process-tree.ts';

const RELAYED = ['SIGINT', 'SIGTERM', 'SIGHUP', 'SIGQUIT', 'SIGUSR1', 'SIGUSR2'] as const;

type Relayed = (typeof RELAYED)[number];

/** Signals that a terminal sends to its foreground process group on ^C and ^\. */
const KEYS: readonly Relayed[] = ['SIGINT', 'SIGQUIT'];

/**
 * Handles the signals sent to `run` and `elect`. Before the job runs, SIGUSR1 and SIGUSR2 are ignored, and the others end the wait for
 * the lock. Once the job runs, all are relayed to it, except SIGINT and SIGQUIT while the job is in the foreground: the terminal
 * sends these to the job itself.
 */
export class Relay {
  readonly #ending = new AbortController();
  #endedBy: Relayed | undefined;
  #tree: ProcessTree | undefined;

  readonly #onSignal = (signal: Relayed): void => {
    const tree = this.#tree;
    if (tree) {
      if (!(KEYS.includes(signal) && tree.inForeground)) relay(signal, tree);
    } else if (isEnding(signal)) {
      this.#endedBy ??= signal;
      this.#ending.abort();
    }
  };

  constructor() {
    for (const signal of RELAYED) process.on(signal, this.#onSignal);
  }

  /** Aborts when a signal ends the wait for the lock. */
  get ending(): AbortSignal {
    return this.#ending.signal;
  }

  /** The signal that ended the wait, if one did. */
  get endedBy(): Relayed | undefined {
    return this.#endedBy;
  }

  /** Relays signals to this job from now on. */
  to(tree: ProcessTree): void {
    this.#tree = tree;
    // The job may have missed a signal that arrived while it was being started.
    if (this.#endedBy) relay(this.#endedBy, tree);
  }

  /** Stops handling signals. */
  end(): void {
    for (const signal of RELAYED) process.off(signal, this.#onSignal);
  }
}

function relay(signal: Relayed, tree: ProcessTree): void {
  // SIGCONT, like timeout(1): a stopped job handles the signal only after that.
  if (isEnding(signal)) tree.send(signal, 'SIGCONT');
  else tree.send(signal);
}
