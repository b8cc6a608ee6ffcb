import { onTestFinished } from 'vitest';

/** Returns the next item of an iterator that has one. */
export async function next<T>(iterator: AsyncIterator<T>): Promise<T> {
  const { value, done } = await iterator.next();
  if (done) throw new Error('the iterator has ended');
  return value;
}

/** Returns a signal that aborts when the test has finished, so that no iteration outlives it. */
export function untilFinished(): AbortSignal {
  const end = new AbortController();
  onTestFinished(() => end.abort());
  return end.signal;
}
