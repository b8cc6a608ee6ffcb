export const PREFACE = 'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n';

const HEAD = 9;
const HEADERS = 1;
const END_STREAM = 1;

/** Detects the begin and end of the streams in one direction of an HTTP/2 connection: a gRPC call is one stream. */
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
    // The ids of streams increase; trailers are HEADERS frames with the id of their stream.
    if (type === HEADERS && stream > this.#begun) {
      this.#begun = stream;
      this.#onStreamBegun();
    }
    // Only in DATA (0) and HEADERS (1) frames does this bit mean END_STREAM.
    if (type <= HEADERS && flags & END_STREAM) this.#onStreamEnded();
  }
}
