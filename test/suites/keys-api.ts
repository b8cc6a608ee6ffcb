import { describe } from 'vitest';
import { answers } from './keys-api/answers.ts';
import { appends } from './keys-api/appends.ts';
import { deletions } from './keys-api/deletions.ts';
import { directories } from './keys-api/directories.ts';
import { ends } from './keys-api/ends.ts';
import { expiry } from './keys-api/expiry.ts';
import { failures } from './keys-api/failures.ts';
import { files } from './keys-api/files.ts';
import { history } from './keys-api/history.ts';
import { reads } from './keys-api/reads.ts';
import { refusals } from './keys-api/refusals.ts';
import { renewals } from './keys-api/renewals.ts';
import { type OpenKeys, storeTest } from './keys-api/store.ts';
import { values } from './keys-api/values.ts';
import { watches } from './keys-api/watches.ts';

/**
 * Tests what every `KeysApi` must do, as etcd 3.4 does it.
 * @param open opens another client of the same store. Tests count the events in its history, so it must have no other users.
 */
export function keysApiContract(name: string, open: OpenKeys): void {
  const test = storeTest(open);
  describe(`${name}, as a KeysApi:`, () => {
    for (const part of [
      // First: keys of other tests that expire meanwhile would be events, too.
      history,
      reads,
      files,
      directories,
      appends,
      renewals,
      deletions,
      values,
      failures,
      answers,
      watches,
      expiry,
      refusals,
      ends,
    ])
      part(test);
  });
}
