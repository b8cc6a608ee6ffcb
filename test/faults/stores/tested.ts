import { inject } from 'vitest';
import type { StoreApi } from '../../../src/client.ts';
import type { TestedStore } from './store.ts';
import { V2 } from './v2.ts';
import { V3 } from './v3.ts';

declare module 'vitest' {
  interface ProvidedContext {
    /** The API of etcd by which the fault tests reach their locks. */
    faultsApi: StoreApi;
  }
}

/** The store that this run of the fault tests is about. */
export const STORE: TestedStore = inject('faultsApi') === 'v3' ? V3 : V2;
