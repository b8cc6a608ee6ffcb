/**
 * Returns for each timer that `work` sets whether it keeps the process alive. Not by `vi.spyOn()`: after the file, Vitest would bring back
 * the function that it found, which is a fake one if timers were fake, and the next file of this process would wait for ever.
 */
export function refsOfTimers(work: () => void): boolean[] {
  const { setTimeout } = globalThis;
  const timers: NodeJS.Timeout[] = [];
  const recorded = (...timer: Parameters<typeof setTimeout>): NodeJS.Timeout => {
    const set = setTimeout(...timer);
    timers.push(set);
    return set;
  };
  globalThis.setTimeout = recorded as typeof setTimeout;
  try {
    work();
  } finally {
    globalThis.setTimeout = setTimeout;
  }
  return timers.map((timer) => timer.hasRef());
}

/** Returns the delay and the code of each fake timer that is set. */
export function fakeTimersLeft(): string[] {
  interface FakeTimer {
    readonly delay: number;
    readonly func: () => void;
  }
  const { clock } = setTimeout as unknown as {
    readonly clock: { readonly timers?: Readonly<Record<string, FakeTimer>> };
  };
  return Object.values(clock.timers ?? {}).map(({ delay, func }) => `${delay} ms: ${func}`);
}
