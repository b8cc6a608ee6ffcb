import { Timeout } from '../timeout.ts';

export interface InTurnOptions {
  /** How many attempts there are after failures. */
  readonly count: number;
  /** Whether another attempt may be made after this failure. */
  readonly goesOn: (error: unknown) => boolean;
  /** Whether those under way are not waited for after a failure. */
  readonly isLate: () => boolean;
}

/** Has another attempt made after so many seconds, and right before that `onLate` called. */
export type AskAnotherAfter = (seconds: number, onLate: () => void) => void;

/**
 * Makes one attempt after the other until one resolves: the next when one has failed and, beyond the count, when the
 * seconds that the last one gave to `askAnotherAfter` have passed, while those before go on. Rejects with the last failure.
 */
export function inTurn<T>(
  attempt: (askAnotherAfter: AskAnotherAfter) => Promise<T>,
  { count, goesOn, isLate }: InTurnOptions,
): Promise<T> {
  return new Promise((resolve, reject) => {
    let begun = 0;
    let running = 0;
    let over = false;
    let patience: Timeout | undefined;
    const end = (settle: () => void): void => {
      over = true;
      patience?.pause();
      settle();
    };
    const begin = (): void => {
      patience?.pause();
      running += 1;
      const askAnotherAfter: AskAnotherAfter = (seconds, onLate) => {
        patience?.pause();
        const next = (): void => {
          onLate();
          begin();
        };
        if (!over) patience = Timeout.run(seconds, next, { ref: false });
      };
      begun += 1;
      attempt(askAnotherAfter).then(
        (value) => end(() => resolve(value)),
        (error) => {
          running -= 1;
          if (over) return;
          if (goesOn(error) && begun < count) begin();
          else if (!goesOn(error) || running === 0 || isLate()) end(() => reject(error));
        },
      );
    };
    begin();
  });
}
