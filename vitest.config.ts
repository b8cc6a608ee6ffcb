import { defineConfig } from 'vitest/config';

export default defineConfig({
  test: {
    // The first two find their server under `inject('etcd')`. A project's setup runs before the root's, so each builds for itself.
    projects: [
      {
        extends: true,
        test: {
          name: 'etcd',
          include: ['test/**/*.test.ts', 'compat/**/*.test.ts'],
          exclude: ['test/faults/**', 'compat/peers/**'],
          globalSetup: ['test/support/global-build.ts', 'test/support/global-python.ts', 'test/support/global-etcd.ts'],
        },
      },
      {
        extends: true,
        test: {
          name: 'embedded',
          include: ['test/{recipe,manager,python,v2/locks}/**/*.test.ts', 'compat/**/*.test.ts'],
          exclude: [
            // These ask no server, or bring their own store,
            'test/recipe/third-store.test.ts',
            'test/recipe/due.test.ts',
            'test/recipe/entry-value.test.ts',
            'test/recipe/own-entries.test.ts',
            'test/recipe/fence.test.ts',
            'test/manager/label.test.ts',
            'test/manager/line.test.ts',
            'test/manager/local-queue.test.ts',
            'test/manager/options.test.ts',
            'test/v2/locks/rules.test.ts',
            'test/v2/locks/enter-timeout.test.ts',
            'test/v2/locks/unclear.test.ts',
            'test/v2/locks/change-wait.test.ts',
            'test/manager/waiter.test.ts',
            // these are about the client and what stands between it and a server,
            'test/recipe/blocked-holder.test.ts',
            'test/v2/locks/odd-proxies.test.ts',
            'test/v2/locks/odd-stores.test.ts',
            'test/v2/locks/version-question.test.ts',
            // and these start real ones: with TLS and passwords, to be killed, to be paused.
            'test/recipe/tls.test.ts',
            'test/recipe/passwords.test.ts',
            'test/recipe/refused-servers.test.ts',
            'test/v2/locks/stale-member.test.ts',
            // This one starts both to compare them.
            'compat/client.test.ts',
            // These need what `npm run peers` builds.
            'compat/peers/**',
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
      {
        extends: true,
        test: {
          name: 'peers',
          include: ['compat/peers/**/*.test.ts'],
          globalSetup: ['test/support/global-build.ts', 'compat/peers/servers.ts'],
        },
      },
    ],
    setupFiles: ['test/support/setup.ts'],
    // Only a test that hangs takes so long, however busy the machine.
    testTimeout: 120_000,
    hookTimeout: 120_000,
    // More than there are processors: a third of the time the tests wait.
    maxWorkers: 3,
  },
});
