/** What goes over a connection in memory: requests one way, and answers in pieces the other way. */

export interface RequestMessage {
  readonly method: string;
  readonly path: string;
  /** Names and values in turn. */
  readonly headers: readonly string[];
  readonly body: string;
}

/** A piece of an answer: the first has the head. */
export interface AnswerPiece {
  readonly head?: AnswerHead | undefined;
  readonly data?: Buffer | undefined;
  readonly isLast: boolean;
}

export interface AnswerHead {
  readonly status: number;
  /** By name in lower case. */
  readonly headers: Readonly<Record<string, string>>;
}

export type Message = RequestMessage | AnswerPiece;

/** Bytes that the head of a message is counted as. */
const HEAD = 100;

export const bytesOf = (message: Message): number =>
  HEAD + ('path' in message ? message.body.length : (message.data?.length ?? 0));
