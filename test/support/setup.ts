// nock 15.0.2 calls Promise.withResolvers, which Node 20 lacks.
const promise = Promise as unknown as { withResolvers?: () => object };
promise.withResolvers ??= () => {
  const made = {};
  return Object.assign(made, { promise: new Promise((resolve, reject) => Object.assign(made, { resolve, reject })) });
};
