import nock from 'nock';
import { afterAll, afterEach, beforeAll } from 'vitest';

/** For every test of a file, answers requests by `nock` only, and refuses all others. */
export function useNock(): void {
  beforeAll(() => {
    // An earlier file of this process has restored it.
    if (!nock.isActive()) nock.activate();
    nock.disableNetConnect();
  });
  afterEach(() => {
    nock.cleanAll();
  });
  afterAll(() => {
    nock.enableNetConnect();
    nock.restore();
  });
}
