import type { ComponentChildren } from 'preact';
import type { ShownEntry, ShownEvent, ShownQueue } from '../src/cli/ui/shapes.ts';
import { Client, Foreign, More, Ttl } from './parts.tsx';
import { Release, ReleaseButton } from './release.tsx';
import { clock, openName, queue, rows } from './state.ts';
import { Timeline } from './timeline.tsx';
import { heldFor, nameOf, otherNamesOf, timeText, waitedFor } from './words.ts';

type Queue = ShownQueue['queues'][number];

function waitsForText({ waitsFor }: ShownEntry, names: ReadonlyMap<string, string>): string {
  if (!waitsFor) return '–';
  const nearest = names.get(waitsFor.key) ?? waitsFor.key;
  return waitsFor.count === 1 ? nearest : `${nearest} or others: ${waitsFor.count} must go`;
}

function Entry({
  entry,
  position,
  names,
  children,
}: {
  readonly entry: ShownEntry;
  readonly position: number;
  readonly names: ReadonlyMap<string, string>;
  readonly children: ComponentChildren;
}) {
  const now = clock.value;
  const { state, mode, limit, ttl, queuedAt, seenAt, value } = entry;
  return (
    <tr class={state}>
      <th scope="row" class="number">
        {position}
      </th>
      <td data-label="State">{state}</td>
      <td data-label="Client">
        <Client client={entry} />
        {otherNamesOf(entry).map((name) => (
          <span class="detail" key={name}>
            <Foreign text={name} />
          </span>
        ))}
        {value !== null && (
          <span class="value">
            publishes <Foreign text={value} />
          </span>
        )}
      </td>
      <td data-label="For">
        {state === 'holds' ? heldFor(entry, now) : waitedFor(queuedAt ?? seenAt, queuedAt !== null, now)}
      </td>
      <td data-label="Mode">{limit === null ? mode : `limit ${limit}`}</td>
      <td data-label="TTL">
        <Ttl ttl={ttl} entry={entry.key} />
        {ttl?.renewedAt != null && <span class="detail">renewed {timeText(ttl.renewedAt)}</span>}
      </td>
      <td data-label="Waits for">
        <Foreign text={waitsForText(entry, names)} />
      </td>
      {children}
    </tr>
  );
}

function Store({ api, holders, waiters, entries, mayRelease }: Queue & Pick<ShownQueue, 'mayRelease'>) {
  const names = new Map(entries.map((entry) => [entry.key, nameOf(entry)]));
  const shown = entries.slice(0, rows.value);
  const rest = entries.length - shown.length;
  const omitted = holders + waiters - entries.length;
  return (
    <section aria-label={`queue on etcd ${api}`}>
      <h2>
        On etcd {api}: {holders} hold, {waiters} wait
      </h2>
      <table class="entries">
        <thead>
          <tr>
            <th scope="col" class="number">
              #
            </th>
            <th scope="col">State</th>
            <th scope="col">Client</th>
            <th scope="col">For</th>
            <th scope="col">Mode</th>
            <th scope="col">TTL</th>
            <th scope="col">Waits for</th>
            {mayRelease && <th scope="col">Release</th>}
          </tr>
        </thead>
        <tbody>
          {shown.map((entry, index) => (
            <Entry key={entry.key} entry={entry} position={index + 1} names={names}>
              {mayRelease && (
                <td data-label="Release">
                  <ReleaseButton entry={entry} api={api} />
                </td>
              )}
            </Entry>
          ))}
        </tbody>
      </table>
      <More rest={rest} />
      {omitted > 0 && <p>{omitted} more entries wait behind these.</p>}
    </section>
  );
}

const Event = ({
  event,
  isOneStore,
}: {
  readonly event: ShownEvent & { readonly api: string };
  readonly isOneStore: boolean;
}) => (
  <li class={`event event-${event.kind}`}>
    <time dateTime={new Date(event.at).toISOString()}>{timeText(event.at)}</time>
    <span class="what">{event.kind}</span>
    <span>
      <Foreign text={nameOf(event.client)} />
      {!isOneStore && <span class="kind">{event.api}</span>}
    </span>
  </li>
);

/** One lock: its queue, and what has happened to it. */
export function OpenLock() {
  const shown = queue.value;
  return (
    <main>
      <h1 tabIndex={-1}>
        Lock <Foreign text={openName.value ?? ''} />
      </h1>
      {!shown && <p role="status">loading</p>}
      {shown && shown.queues.length === 0 && (
        <p class="empty" role="status">
          The queue is empty: nobody holds this lock.
        </p>
      )}
      {shown?.mayRelease && <Release />}
      {shown && <Timeline queue={shown} />}
      {shown?.queues.map((each) => (
        <Store key={each.api} {...each} mayRelease={shown.mayRelease} />
      ))}
      {shown && (
        <section aria-label="history">
          <h2>
            Since {timeText(shown.recordedSince)}
            {shown.recordedSince === shown.startedAt ? ', when this server started' : '; earlier events are not kept'}
          </h2>
          {shown.history.length === 0 && <p class="empty">Nothing has happened.</p>}
          <ol class="history">
            {shown.history.toReversed().map((event) => (
              <Event
                key={`${event.at} ${event.kind} ${event.client.key}`}
                event={event}
                isOneStore={shown.stores.length === 1}
              />
            ))}
          </ol>
        </section>
      )}
    </main>
  );
}
