import { EtcdUnusableAnswer } from '../errors.ts';
import type { WireAnswer } from './message.ts';

const MEBIBYTE = 1024 * 1024;
/** Of one answer: a listing of 300,000 entries is smaller. */
const MOST_MEBIBYTES = 64;
/** Bytes that keeping a chunk costs beside its own: chunks of one byte would fill the memory all the same. */
const PER_CHUNK = 128;

/** The body of an answer, kept as it comes, up to a limit. */
export class Body {
  readonly #status: number;
  readonly #declared: number;
  readonly #chunks: Buffer[] = [];
  #kept = 0;

  constructor({ status, headers }: Pick<WireAnswer, 'status' | 'headers'>) {
    this.#status = status;
    this.#declared = Number(headers['content-length'] ?? 0);
  }

  get text(): string {
    const whole = this.#chunks.length > 1 ? Buffer.concat(this.#chunks) : this.#chunks[0];
    return whole?.toString() ?? '';
  }

  /** @throws {EtcdUnusableAnswer} where it is said to be larger than it may be */
  begin(): void {
    if (this.#declared > MOST_MEBIBYTES * MEBIBYTE) throw this.#tooLarge();
  }

  /** @throws {EtcdUnusableAnswer} once it is larger than it may be */
  add(chunk: Buffer): void {
    this.#kept += chunk.length + PER_CHUNK;
    if (this.#kept > MOST_MEBIBYTES * MEBIBYTE) throw this.#tooLarge();
    this.#chunks.push(chunk);
  }

  #tooLarge(): EtcdUnusableAnswer {
    this.#chunks.length = 0;
    const size = this.#declared > 0 ? ` (${this.#declared} bytes)` : '';
    return new EtcdUnusableAnswer(`answered ${this.#status} with more than ${MOST_MEBIBYTES} MiB${size}`, {
      status: this.#status,
      outcomeUnknown: this.#status < 300 || this.#status >= 500,
    });
  }
}
