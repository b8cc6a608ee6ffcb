import { EtcdUnusableAnswer } from '../errors.ts';
import type { WireAnswer } from '../http/message.ts';
import { decodeCancellation, decodeError } from './errors.ts';
import { decodeKeyValue, Fields, type Json, type KeyValue } from './messages.ts';

/** Most bytes of one message. An answer about one key is far smaller. */
const LONGEST_MESSAGE = 4 * 1024 * 1024;

/**
 * Splits a stream into JSON objects. The gateway does not promise a newline between them, or that a piece of the stream ends where
 * an object does.
 */
export class JsonObjects {
  readonly #onObject: (text: string) => void;
  #text = '';
  /** How much of the text has been looked at. */
  #seen = 0;
  #depth = 0;
  #inString = false;
  #escaped = false;
  readonly #decoder = new TextDecoder();

  constructor(onObject: (text: string) => void) {
    this.#onObject = onObject;
  }

  /** @throws {EtcdUnusableAnswer} if an object is too long */
  add(chunk: Buffer): void {
    this.#text += this.#decoder.decode(chunk, { stream: true });
    for (; this.#seen < this.#text.length; this.#seen += 1) this.#step(this.#text[this.#seen] ?? '');
    if (this.#text.length > LONGEST_MESSAGE) throw new EtcdUnusableAnswer('a message of a watch is too long');
  }

  #step(char: string): void {
    if (this.#escaped) this.#escaped = false;
    else if (this.#inString) {
      if (char === '\\') this.#escaped = true;
      else if (char === '"') this.#inString = false;
    } else if (char === '"') this.#inString = true;
    else if (char === '{') this.#depth += 1;
    else if (char === '}') this.#close();
  }

  #close(): void {
    this.#depth -= 1;
    if (this.#depth > 0) return;
    const object = this.#text.slice(0, this.#seen + 1);
    this.#text = this.#text.slice(this.#seen + 1);
    this.#seen = -1;
    this.#depth = 0;
    this.#onObject(object.trim());
  }
}

/** A change of a watched key. Of a deleted key, only its name and the revision of the deletion are known. */
export interface WatchEvent {
  readonly isDeleted: boolean;
  readonly of: KeyValue;
}

/**
 * Reads a message of a watch. Returns its events, of which the message that begins a watch has none, or to `compacted`: the
 * events from the start of the watch on are no longer known, so read again.
 * @throws the error that the message is, or {@link EtcdConnectionFailed} when the member has ended the watch
 */
export function decodeWatchMessage(text: string): readonly WatchEvent[] | 'compacted' {
  const answer: WireAnswer = { status: 200, headers: {}, body: text, sentAt: 0 };
  let body: Json;
  try {
    body = JSON.parse(text) as Json;
  } catch {
    throw new EtcdUnusableAnswer('a message of a watch is not JSON');
  }
  if (body['error'] !== undefined) throw decodeError({ ...answer, status: 503 }, body);
  const result = new Fields(answer, body).message('result');
  if (result.integer('compact_revision') > 0n) return 'compacted';
  if (result.flag('canceled')) throw decodeCancellation(result.text('cancel_reason'));
  return result.list('events').map((event) => ({
    isDeleted: event.text('type') === 'DELETE',
    of: decodeKeyValue(event.message('kv')),
  }));
}
