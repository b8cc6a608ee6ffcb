/**
 * The v2 keys protocol as values, from both ends: what a request looks like, and what an answer means. Pure: no I/O.
 */

export type { WireAnswer, WireReply, WireRequest } from '../http/message.ts';
export * from './wire/answers.ts';
export { encodePath, hasBytes, toBytes } from './wire/bytes.ts';
export { encodeError } from './wire/errors.ts';
export { badEscape, type Fields, parseFields, unescapeBytes } from './wire/form.ts';
export * from './wire/info.ts';
export { etcdJson } from './wire/json.ts';
export * from './wire/requests.ts';
