/** Gets what the page shows, as server-sent events: one stream at a time, because a browser allows few to one host. */
import { batch } from '@preact/signals';
import type { ShownQueue, Snapshot, SnapshotChange } from '../src/cli/ui/shapes.ts';
import { applyChange, heard, lost, openName, showAll, showQueue } from './state.ts';

/** Milliseconds without a sign of life, which the server gives every ten seconds, after which the connection is dead. */
const SILENCE = 25_000;
/** Milliseconds until the next attempt to connect. */
const RETRY = 1000;
/** Milliseconds after which a page that nobody sees closes its stream. */
const HIDDEN = 5000;

let stream: EventSource | undefined;
let silence: number | undefined;
let retry: number | undefined;
let hidden: number | undefined;

const HANDLERS = {
  snapshot: (data: Snapshot) => showAll(data),
  change: (data: SnapshotChange) => applyChange(data),
  lock: (data: ShownQueue) => showQueue(data),
  ping: () => {},
} as const;

/** Connects, in place of any earlier connection. */
export function connect(): void {
  disconnect();
  const name = openName.value;
  const source = new EventSource(name === undefined ? 'api/events' : `api/events?lock=${encodeURIComponent(name)}`);
  stream = source;
  for (const [event, handle] of Object.entries(HANDLERS))
    source.addEventListener(event, ({ data }: MessageEvent<string>) => {
      const message = JSON.parse(data);
      batch(() => {
        handle(message as never);
        heard(message.now);
      });
      expectMore();
    });
  source.addEventListener('error', again);
  expectMore();
}

function disconnect(): void {
  clearTimeout(silence);
  clearTimeout(retry);
  stream?.close();
  stream = undefined;
}

function again(): void {
  disconnect();
  lost();
  retry = window.setTimeout(connect, RETRY);
}

function expectMore(): void {
  clearTimeout(silence);
  silence = window.setTimeout(again, SILENCE);
}

/** Closes the stream of a page that nobody sees, and opens it again. */
export function followVisibility(): void {
  document.addEventListener('visibilitychange', () => {
    clearTimeout(hidden);
    if (document.hidden) hidden = window.setTimeout(disconnect, HIDDEN);
    else if (!stream) connect();
  });
}
