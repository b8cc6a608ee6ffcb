import type { TestProject } from 'vitest/node';
import { findPython } from '../../scripts/find.mjs';

declare module 'vitest' {
  interface ProvidedContext {
    /** The python3 that can `import etcd`; null if there is none. */
    python: string | null;
  }
}

/** The search runs programs one by one and blocks the event loop, so no test may do it while it holds a lock or runs a proxy. */
export default function setup(project: TestProject): void {
  project.provide('python', findPython() ?? null);
}
