/** The parts of the embedded server that the members of a simulated cluster are made of. Bundled for each world. */
export { ignore } from '../../../src/base/cancellation.ts';
export { EtcdEventIndexCleared } from '../../../src/errors.ts';
export { Front } from '../../../src/server/front/front.ts';
export { createHttpServer } from '../../../src/server/front/http-server.ts';
export { CLOSED_HALF } from '../../../src/server/front/waits.ts';
export { forEveryone } from '../../../src/server/served-keys.ts';
export { MemoryStore } from '../../../src/server/store/memory.ts';
export { Store } from '../../../src/server/store/store.ts';
export { EtcdV3Refusal } from '../../../src/server/v3/errors.ts';
export { failure, lastLine, result, success } from '../../../src/server/v3/gateway/answers.ts';
export { encode } from '../../../src/server/v3/gateway/encode.ts';
export { V3Gateway } from '../../../src/server/v3/gateway/gateway.ts';
export { LEASE_RESPONSE } from '../../../src/server/v3/gateway/kinds.ts';
export { V3Member } from '../../../src/server/v3/member.ts';
export { etcdError } from '../../../src/v2/error-codes.ts';
