// nock 15.0.2 calls Promise.withResolvers, which Node 20 lacks.
const promise = Promise as unknown as { withResolvers?: () => object };
promise.withResolvers ??= () => {
  const made = {};
  return Object.assign(made, { promise: new Promise((resolve, reject) => Object.assign(made, { resolve, reject })) });
};

// Files share a process, so none may leave a fake behind.
const shared = globalThis as { firstSetTimeout?: typeof setTimeout };
shared.firstSetTimeout ??= setTimeout;
if (setTimeout !== shared.firstSetTimeout) {
  globalThis.setTimeout = shared.firstSetTimeout;
  throw new Error('an earlier test file of this process has left a fake setTimeout: did it spy on one?');
}
