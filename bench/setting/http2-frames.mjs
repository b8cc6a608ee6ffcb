export const PREFACE = 'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n';

const HEAD = 9;
const HEADERS = 1;
const END_STREAM = 1;

/** Sees the streams of one way of an HTTP/2 connection begin and end: a gRPC call is one stream. */
export class Http2Frames {
  #rest = Buffer.alloc(0);
  #begun = 0;
  #skip;
  #onStreamBegun;
  #onStreamEnded;

  constructor({ skip, onStreamBegun = () => {}, onStreamEnded = () => {} }) {
    this.#skip = skip;
    this.#onStreamBegun = onStreamBegun;
    this.#onStreamEnded = onStreamEnded;
  }

  take(chunk) {
    const bytes = Buffer.concat([this.#rest, chunk]);
    let at = Math.min(this.#skip, bytes.length);
    this.#skip -= at;
    while (bytes.length - at >= HEAD) {
      const end = at + HEAD + bytes.readUIntBE(at, 3);
      if (end > bytes.length) break;
      this.#frame(bytes[at + 3], bytes[at + 4], bytes.readUInt32BE(at + 5));
      at = end;
    }
    this.#rest = bytes.subarray(at);
  }

  #frame(type, flags, stream) {
    // Ids grow, and trailers come under the id of their stream.
    if (type === HEADERS && stream > this.#begun) {
      this.#begun = stream;
      this.#onStreamBegun();
    }
    // 0 is data and 1 is headers; elsewhere this bit means something else.
    if (type <= HEADERS && flags & END_STREAM) this.#onStreamEnded();
  }
}
