import { Client, Foreign, LockName } from './parts.tsx';
import { clock, elections, isLoaded, stores } from './state.ts';
import { heldFor } from './words.ts';

/** The locks whose holder or waiters publish a value: elections, with their leaders. */
export function ElectionList() {
  const isOneStore = stores.value.length === 1;
  const now = clock.value;
  return (
    <main>
      <h1 tabIndex={-1}>Elections</h1>
      {!isLoaded.value && <p role="status">loading</p>}
      {isLoaded.value && elections.value.length === 0 && (
        <p class="empty">No client publishes a value, as candidates of an election do.</p>
      )}
      {elections.value.length > 0 && (
        <table class="elections">
          <thead>
            <tr>
              <th scope="col">Election</th>
              <th scope="col">Leader</th>
              <th scope="col">Value</th>
              <th scope="col">Leads for</th>
              <th scope="col" class="number">
                Candidates
              </th>
            </tr>
          </thead>
          <tbody>
            {elections.value.map(({ id, name, isCut, api, holder, value, candidates }) => (
              <tr key={id}>
                <th scope="row">
                  <LockName name={name} isCut={isCut} />
                  {!isOneStore && <span class="kind">{api}</span>}
                </th>
                <td data-label="Leader">
                  <Client client={holder} />
                </td>
                <td data-label="Value">{value === null ? '–' : <Foreign text={value} />}</td>
                <td data-label="Leads for">{heldFor(holder, now)}</td>
                <td data-label="Candidates" class="number">
                  {candidates}
                </td>
              </tr>
            ))}
          </tbody>
        </table>
      )}
    </main>
  );
}
