import { defineConfig } from 'vitest/config';

export default defineConfig({
  test: {
    // Both find their server under `inject('etcd')`. A project's setup runs before the root's, so each builds for itself.
    projects: [
      {
        extends: true,
        test: {
          name: 'etcd',
          include: ['test/**/*.test.ts', 'compat/**/*.test.ts'],
          exclude: ['test/faults/**'],
          globalSetup: ['test/support/global-build.ts', 'test/support/global-python.ts', 'test/support/global-etcd.ts'],
        },
      },
      {
        extends: true,
        test: {
          name: 'embedded',
          include: ['test/lock/**/*.test.ts', 'compat/**/*.test.ts'],
          exclude: [
            // These ask no server at all,
            'test/lock/due.test.ts',
            'test/lock/entry-value.test.ts',
            'test/lock/fence.test.ts',
            'test/lock/line.test.ts',
            'test/lock/local-queue.test.ts',
            'test/lock/manager-options.test.ts',
            'test/lock/rules.test.ts',
            'test/lock/enter-timeout.test.ts',
            'test/lock/unclear.test.ts',
            'test/lock/change-wait.test.ts',
            'test/lock/waiter.test.ts',
            // these are about the client and what stands between it and a server,
            'test/lock/blocked-holder.test.ts',
            'test/lock/odd-proxies.test.ts',
            'test/lock/odd-stores.test.ts',
            'test/lock/version-question.test.ts',
            // and these start real ones: with TLS and passwords, to be killed, to be paused.
            'test/lock/tls.test.ts',
            'test/lock/passwords.test.ts',
            'test/lock/refused-servers.test.ts',
            'test/lock/stale-member.test.ts',
            // This one starts both to compare them.
            'compat/client.test.ts',
          ],
          globalSetup: [
            'test/support/global-build.ts',
            'test/support/global-python.ts',
            'test/support/global-embedded.ts',
          ],
        },
      },
      {
        extends: true,
        test: {
          name: 'faults',
          include: ['test/faults/**/*.test.ts'],
          globalSetup: ['test/support/global-build.ts', 'test/support/global-python.ts', 'test/support/global-etcd.ts'],
          // After the others. They mostly wait, so that more of them fit than there are processors.
          sequence: { groupOrder: 1 },
          maxWorkers: 6,
        },
      },
    ],
    setupFiles: ['test/support/setup.ts'],
    // Only a test that hangs takes so long, however busy the machine.
    testTimeout: 120_000,
    hookTimeout: 120_000,
    maxWorkers: 2,
  },
});
