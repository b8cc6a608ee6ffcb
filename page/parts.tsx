import { printable } from '../src/base/printable.ts';
import type { ShownClient, ShownTtl } from '../src/cli/ui/shapes.ts';
import { clock, isLoaded, lostSince, ROWS, rows, stores } from './state.ts';
import { nameOf, secondsLeft, timeText } from './words.ts';

/** Text that a client of etcd has written. Its direction does not change that of the text around it. */
export const Foreign = ({ text }: { readonly text: string }) => <bdi>{printable(text)}</bdi>;

/** The name of a lock, which leads to its own page. A name that is cut leads nowhere. */
export const LockName = ({ name, isCut = false }: { readonly name: string; readonly isCut?: boolean }) =>
  isCut ? (
    <Foreign text={name} />
  ) : (
    <a href={`#/lock/${encodeURIComponent(name)}`}>
      <Foreign text={name} />
    </a>
  );

/** The client of an entry, with its kind. */
export const Client = ({ client, others = 0 }: { readonly client: ShownClient; readonly others?: number }) => (
  <>
    <span class="client">
      <Foreign text={nameOf(client)} />
      {others > 0 && <span class="more"> and {others} more</span>}
    </span>
    <span class={`kind kind-${client.kind.replaceAll(' ', '-')}`}>{client.kind}</span>
  </>
);

/** The longest TTL that was seen of each entry: the width of its bar. */
const longest = new Map<string, number>();
/** Number of entries that are remembered. */
const MOST_KEYS = 20_000;

function longestOf(key: string, left: number): number {
  if (longest.size > MOST_KEYS) longest.clear();
  const most = Math.max(longest.get(key) ?? 0, left);
  longest.set(key, most);
  return most;
}

/** The time left of an entry, as a bar that jumps at each renewal. */
export function Ttl({ ttl, entry }: { readonly ttl: ShownTtl | null; readonly entry: string }) {
  if (ttl?.left === null) return <span class="never">never expires</span>;
  const seconds = ttl ? secondsLeft(ttl, clock.value) : undefined;
  if (!ttl || seconds === undefined) return <span title="not read since the last renewal">not known</span>;
  return (
    <span class="ttl">
      <progress max={longestOf(entry, ttl.left)} value={seconds} aria-label="time left of the TTL" />
      <span>{seconds} s</span>
    </span>
  );
}

/** Shows further rows of a table, if there are any. */
export const More = ({ rest }: { readonly rest: number }) =>
  rest > 0 && (
    <button
      type="button"
      onClick={() => {
        rows.value += ROWS;
      }}
    >
      Show {Math.min(rest, ROWS)} more of {rest}
    </button>
  );

/** Says that what is shown is old, and since when. The text does not change each second: screen readers read it out. */
export function Outages() {
  const lines = stores.value.flatMap(({ api, outage }) =>
    outage ? [`etcd ${api} was last seen at ${timeText(outage.since)}: ${printable(outage.message)}`] : [],
  );
  const since = lostSince.value;
  if (since !== undefined)
    lines.unshift(
      `The server of this page has not answered since ${timeText(since)}. The page connects again by itself.`,
    );
  return (
    <div role="alert">
      {lines.length > 0 && (
        <div class="outage">
          {lines.map((line) => (
            <p key={line.slice(0, 10)}>{line}</p>
          ))}
          {isLoaded.value && <p>Below is what was seen until then.</p>}
        </div>
      )}
    </div>
  );
}
