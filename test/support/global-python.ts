import type { TestProject } from 'vitest/node';
import { findPython } from '../../scripts/find.mjs';

declare module 'vitest' {
  interface ProvidedContext {
    /** The python3 that can `import etcd`; null if there is none. */
    python: string | null;
  }
}

/** Searches once, before the tests: the search blocks the event loop, which would disturb tests with locks or proxies. */
export default function setup(project: TestProject): void {
  project.provide('python', findPython() ?? null);
}
