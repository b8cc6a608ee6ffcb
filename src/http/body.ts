import { EtcdUnusableAnswer } from '../errors.ts';
import type { WireAnswer } from './message.ts';

export const MEBIBYTE = 1024 * 1024;
/** Size limit of one answer. A listing of 300,000 entries is smaller. */
export const MAX_MEBIBYTES = 64;
/** Bytes counted for each chunk in addition to its data. Else many tiny chunks could fill the memory despite the limit. */
const PER_CHUNK = 128;

/** Collects the body of an answer, up to a size limit. */
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

  /** @throws {EtcdUnusableAnswer} if the declared length exceeds the limit */
  checkDeclared(): void {
    if (this.#declared > MAX_MEBIBYTES * MEBIBYTE) throw this.#tooLarge();
  }

  /** @throws {EtcdUnusableAnswer} as soon as the body exceeds the limit */
  add(chunk: Buffer): void {
    this.#kept += chunk.length + PER_CHUNK;
    if (this.#kept > MAX_MEBIBYTES * MEBIBYTE) throw this.#tooLarge();
    this.#chunks.push(chunk);
  }

  #tooLarge(): EtcdUnusableAnswer {
    this.#chunks.length = 0;
    const size = this.#declared > 0 ? ` (${this.#declared} bytes)` : '';
    return new EtcdUnusableAnswer(`answered ${this.#status} with more than ${MAX_MEBIBYTES} MiB${size}`, {
      httpStatus: this.#status,
      outcomeUnknown: this.#status < 300 || this.#status >= 500,
    });
  }
}
