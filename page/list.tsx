import type { LockWithTtl } from '../src/cli/ui/shapes.ts';
import { Client, Foreign, LockName, More, Ttl } from './parts.tsx';
import {
  clock,
  contended,
  count,
  found,
  isLoaded,
  ORDERS,
  type OrderName,
  order,
  ROWS,
  rows,
  search,
  stores,
} from './state.ts';
import { heldFor, waitedFor } from './words.ts';

function Row({ lock, isOneStore }: { readonly lock: LockWithTtl; readonly isOneStore: boolean }) {
  const { name, isCut, api, holder, holders, waiters, waitingSince, isWaitKnown, value, ttl } = lock;
  const now = clock.value;
  return (
    <tr class={waiters > 0 ? 'contended' : ''}>
      <th scope="row">
        <LockName name={name} isCut={isCut} />
        {!isOneStore && <span class="kind">{api}</span>}
        {value !== null && (
          <span class="value">
            publishes <Foreign text={value} />
          </span>
        )}
      </th>
      <td data-label="Holder">
        <Client client={holder} others={holders - 1} />
      </td>
      <td data-label="Held for">{heldFor(holder, now)}</td>
      <td data-label="TTL">
        <Ttl ttl={ttl} entry={holder.key} />
      </td>
      <td data-label="Waiters" class="number">
        {waiters}
      </td>
      <td data-label="Longest wait">{waitingSince === null ? '–' : waitedFor(waitingSince, isWaitKnown, now)}</td>
    </tr>
  );
}

function Controls() {
  return (
    <search class="controls">
      <label>
        Search{' '}
        <input
          type="search"
          value={search.value}
          placeholder="part of a name"
          onInput={(event) => {
            search.value = event.currentTarget.value;
            rows.value = ROWS;
          }}
        />
      </label>
      <label>
        Sort by{' '}
        <select
          value={order.value}
          onChange={(event) => {
            order.value = event.currentTarget.value as OrderName;
          }}
        >
          {Object.keys(ORDERS).map((name) => (
            <option key={name} value={name}>
              {name}
            </option>
          ))}
        </select>
      </label>
    </search>
  );
}

/** All locks. */
export function List() {
  const shown = found.value.slice(0, rows.value);
  const rest = found.value.length - shown.length;
  const omitted = stores.value.reduce((sum, store) => sum + store.omitted, 0);
  const isOneStore = stores.value.length === 1;
  const sum =
    found.value.length === count.value ? `${count.value} locks` : `${found.value.length} of ${count.value} locks`;
  return (
    <main>
      <h1 tabIndex={-1}>Locks on etcd {stores.value.map(({ api }) => api).join(' and ')}</h1>
      <Controls />
      <p role={isLoaded.value && search.value === '' ? undefined : 'status'}>
        {isLoaded.value ? `${sum}, ${contended.value} with waiters` : 'loading'}
      </p>
      {omitted > 0 && <p>{omitted} more locks are not shown, because there are too many.</p>}
      {shown.length > 0 && (
        <table class="locks">
          <thead>
            <tr>
              <th scope="col">Lock</th>
              <th scope="col">Holder</th>
              <th scope="col">Held for</th>
              <th scope="col">TTL</th>
              <th scope="col" class="number">
                Waiters
              </th>
              <th scope="col">Longest wait</th>
            </tr>
          </thead>
          <tbody>
            {shown.map((lock) => (
              <Row key={lock.id} lock={lock} isOneStore={isOneStore} />
            ))}
          </tbody>
        </table>
      )}
      {isLoaded.value && shown.length === 0 && (
        <p class="empty">{count.value === 0 ? 'No lock is held.' : 'No lock has such a name.'}</p>
      )}
      <More rest={rest} />
    </main>
  );
}
