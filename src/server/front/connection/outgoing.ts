import type { ServerResponse } from 'node:http';
import type { WireReply } from '../../../v2/wire.ts';
import type { Unsent } from './unsent.ts';
import type { Work } from './work.ts';

/** Bytes of an answer that are passed to Node at a time. Node reports only when the system has taken all that it was passed. */
const WINDOW = 16_384;

/** Bytes of memory that an answer, or a line of a stream, costs besides its text. */
const COST = 1024;

/** Sends a whole answer. Returns false, and sends nothing, if the budget has no room for it. */
export function send({ response, pipeline }: Work, { status, headers, body }: WireReply): boolean {
  const { unsent } = pipeline;
  const length = Buffer.byteLength(body);
  if (!unsent.add(length + COST)) return false;
  if (headers['Connection'] === 'close') pipeline.endAfter(response);
  response.writeHead(status, { ...headers, 'Content-Length': length });
  if (length > WINDOW) {
    const outgoing = new Outgoing(response, unsent);
    outgoing.pass(body);
    outgoing.end();
  } else {
    response.once('close', () => unsent.taken(length + COST));
    response.end(body);
  }
  return true;
}

/** The body of a long answer, or of a stream, on its way to the client. */
export class Outgoing {
  readonly #response: ServerResponse;
  readonly #unsent: Unsent;
  readonly #texts: Buffer[] = [];
  /** Number of bytes of the first text that Node has. */
  #at = 0;
  /** Number of bytes that Node has and the system has not. */
  #passed = 0;
  #isEnded = false;

  constructor(response: ServerResponse, unsent: Unsent) {
    this.#response = response;
    this.#unsent = unsent;
  }

  /**
   * Sends the next text of the body. Returns false, and sends nothing, if the budget has no room for it.
   * @param begin called before the text is sent
   */
  write(text: string, begin?: () => void): boolean {
    if (!this.#unsent.add(Buffer.byteLength(text) + COST)) return false;
    begin?.();
    this.pass(text);
    return true;
  }

  /** Sends the next text, which has been added to the unsent bytes. */
  pass(text: string): void {
    this.#texts.push(Buffer.from(text));
    this.#flow();
  }

  /** Ends the answer behind all texts. */
  end(): void {
    this.#isEnded = true;
    this.#flow();
  }

  #flow(): void {
    for (let [text] = this.#texts; text && this.#passed < WINDOW; [text] = this.#texts) this.#passPieceOf(text);
    if (this.#isEnded && this.#texts.length === 0 && !this.#response.writableEnded) this.#response.end();
  }

  #passPieceOf(text: Buffer): void {
    const piece = text.subarray(this.#at, this.#at + WINDOW);
    this.#at += piece.length;
    const isLast = this.#at === text.length;
    if (isLast) {
      this.#texts.shift();
      this.#at = 0;
    }
    this.#passed += piece.length;
    this.#response.write(piece, (error) => {
      if (error) return; // the connection has ended
      this.#passed -= piece.length;
      this.#unsent.taken(isLast ? text.length + COST : 0);
      this.#flow();
    });
  }
}
