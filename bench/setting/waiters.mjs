import { pollsAt, watchesAt } from './etcd.mjs';
import { until } from './until.mjs';

/**
 * How to wait for waiters, by etcd's API: a state to wait for, instead of a fixed time. Call before they begin to wait; the
 * function returned waits until etcd has registered `count` more of them.
 */
export const waitersAt = {
  async v2(url) {
    const before = await pollsAt(url);
    return (count) =>
      until(
        () => pollsAt(url),
        (polls) => polls >= before + count,
        EVERY,
      );
  },
  /** Needs an etcd that nobody else uses. An earlier watch may end only now, so their present number alone is not enough. */
  async v3(url) {
    const before = await watchesAt(url);
    return (count) =>
      until(
        () => watchesAt(url),
        ({ open, messages }) => open >= count && messages >= before.messages + count,
        EVERY,
      );
  },
};

const EVERY = { every: 1 };
