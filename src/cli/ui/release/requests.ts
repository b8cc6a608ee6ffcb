import type { IncomingMessage } from 'node:http';
import type { EntryName } from './releases.ts';

/** What a request for `/api/release` wants. */
export interface Wanted extends EntryName {
  readonly force: boolean;
}

/** Why a request is refused. */
export interface Refusal {
  readonly status: number;
  readonly why: string;
}

/** Maximum number of bytes of a body: a name and a key, with escapes. */
const MOST_BYTES = 16 * 1024;

/** Returns the entry that a GET asks for, in its query, or a POST, in its body. */
export async function readRequest(request: IncomingMessage, query: URLSearchParams): Promise<Wanted | Refusal> {
  const isChange = request.method === 'POST';
  const text = isChange ? await bodyOf(request) : JSON.stringify(Object.fromEntries(query));
  if (text === undefined) return { status: 413, why: `the body must have at most ${MOST_BYTES} bytes` };
  const wanted = wantedIn(text);
  if (wanted && (isChange || !wanted.force)) return wanted;
  return { status: 400, why: 'give "name", "api", "key" and "uuid" as texts; a POST may also have "force": true' };
}

/** Returns the body of a request; undefined if it is too long, or does not end. */
function bodyOf(request: IncomingMessage): Promise<string | undefined> {
  return new Promise((resolve) => {
    const pieces: Buffer[] = [];
    let size = 0;
    request.on('data', (piece: Buffer) => {
      size += piece.length;
      if (size <= MOST_BYTES) pieces.push(piece);
      else {
        request.pause();
        resolve(undefined);
      }
    });
    request.once('end', () => resolve(Buffer.concat(pieces).toString()));
    request.once('close', () => resolve(undefined));
  });
}

/** Returns the entry in a text; undefined if it has anything else. */
function wantedIn(json: string): Wanted | undefined {
  let fields: unknown;
  try {
    fields = JSON.parse(json);
  } catch {
    return undefined;
  }
  if (typeof fields !== 'object' || fields === null) return undefined;
  const { name, api, key, uuid, force = false, ...others } = fields as Record<string, unknown>;
  const texts = [name, api, key, uuid];
  if (!texts.every((each) => typeof each === 'string') || Object.keys(others).length > 0) return undefined;
  return typeof force === 'boolean' ? ({ name, api, key, uuid, force } as Wanted) : undefined;
}
