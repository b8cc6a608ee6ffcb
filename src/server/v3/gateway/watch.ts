import type { Stream, StreamOutput } from '../../front/gateway.ts';
import { OutOfMemory } from '../../served-keys.ts';
import type { KeyRange } from '../bytes.ts';
import * as errors from '../errors.ts';
import type { WatchResponse } from '../messages.ts';
import { HEADERS, lastLine, result } from './answers.ts';
import type { Asked } from './call.ts';
import { encode } from './encode.ts';
import { WATCH_REQUEST, WATCH_RESPONSE } from './kinds.ts';
import { requestsIn } from './requests.ts';
import { WatchStream } from './watch-stream.ts';

/** Milliseconds between two reports of progress to a watch without events, as in etcd. */
const PROGRESS_INTERVAL = 600_000;

/**
 * Starts the watches that a body asks for, up to the first request that cannot be read.
 * @throws {EtcdV3Refusal} if that is the first one; etcd 3.6 answers nothing then
 */
export function watch(body: string, { member, token, decode }: Asked): Stream {
  const { requests, error } = requestsIn(WATCH_REQUEST, body, decode);
  if (error && member.version !== '3.6') throw error;
  return {
    headers: HEADERS,
    lastLine: lastLine(errors.canceled(), member.version),
    open: (output) => {
      const { store, auth, clock } = member;
      let isWaiting = false;
      const isReady = (): boolean => {
        if (!output.isReady && !isWaiting) {
          isWaiting = true;
          void output.ready().then(() => {
            isWaiting = false;
            stream.resume();
          });
        }
        return output.isReady;
      };
      const watchOutput = {
        headerAt: (revision: bigint | undefined) => member.headerAt(revision),
        check: (range: KeyRange) => auth.check(auth.userOf(token), 'READ', range),
        send: (response: WatchResponse) => send(output, response),
        isReady,
        take: (bytes: number) => output.take(bytes),
        give: (bytes: number) => output.give(bytes),
      };
      const stream = new WatchStream(store, watchOutput, member.version);
      for (const request of requests) stream.take(request);
      let cancel = (): void => {};
      const arm = (): void => {
        cancel = clock.after(PROGRESS_INTERVAL, () => {
          stream.reportProgress();
          arm();
        });
      };
      arm();
      return () => {
        cancel();
        stream.end();
      };
    },
  };
}

/** Sends an answer. If it is too long, ends the stream, and not the write that it reports. */
function send(output: StreamOutput, response: WatchResponse): void {
  let line: string;
  try {
    line = result(encode(WATCH_RESPONSE, response));
  } catch (error) {
    if (!(error instanceof OutOfMemory)) throw error;
    return void output.fail(error);
  }
  output.send(line);
}
