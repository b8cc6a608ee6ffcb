/**
 * Encoders and decoders of the v2 keys protocol, for clients and servers. No I/O.
 */

export { encodePath, hasBytes, toBytes } from '../http/bytes.ts';
export type { WireAnswer, WireReply, WireRequest } from '../http/message.ts';
export * from './wire/answers.ts';
export { encodeError, refusal } from './wire/errors.ts';
export { badEscape, type Fields, parseFields, unescapeBytes } from './wire/form.ts';
export * from './wire/info.ts';
export { etcdJson } from './wire/json.ts';
export * from './wire/requests.ts';
