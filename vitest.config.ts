import { defineConfig, type TestProjectConfiguration } from 'vitest/config';
import { BaseSequencer, type TestSpecification } from 'vitest/node';

/** What runs of the fault tests: `npm run faults` and `npm run soak` set it. Otherwise only few run on etcd v3. */
const chosen = process.env['FAULTS'];

const ALL = ['test/faults/*.test.ts'];
const BRIDGE = ['test/faults/bridge/*.test.ts'];
const SHORT_BRIDGE = ['test/faults/bridge/members.test.ts'];
const MOVING = ['test/faults/moving/*.test.ts'];
const SHORT_MOVING = ['test/faults/moving/short.test.ts'];
/** Needs what `npm run peers` builds. */
const UPGRADE = ['test/faults/moving/upgrade.test.ts'];
const SHORT = ['test/faults/short-round.test.ts'];

const ONLY_V3 = SHORT;

const ONLY_V2 = [
  // These inflict what only etcd v2 can suffer: see test/faults/README.md.
  'test/faults/late-append.test.ts',
  'test/faults/long-outage.test.ts',
  'test/faults/missed-events.test.ts',
  'test/faults/without-v2.test.ts',
  // These test the faults themselves, and know no API.
  'test/faults/{checker,expired,fault-cluster,guarded-sets,keyless,line,promises,revoked,schedule,tcp-proxy,verdict,waits}.test.ts',
];

/** The campaign has no named faults, and a command of its own. */
const NOT_NAMED = chosen === 'named' ? ['test/faults/campaign.test.ts'] : [];

/** For the fault tests. They mostly wait, so that more of them fit than there are processors. */
const AFTER_THE_OTHERS = { sequence: { groupOrder: 1 }, maxWorkers: 8 };

/** Files that take long although they are short, the longest first. They mostly wait. */
const LONG = [
  'test/cli/run-loss.test.ts',
  'test/v3/manager.test.ts',
  'test/both/manager.test.ts',
  'test/package.test.ts',
  'test/server/contract.test.ts',
  'test/manager/scale.test.ts',
  'test/recipe/third-store.test.ts',
  'test/manager/contract.test.ts',
  'test/manager/several.test.ts',
  'test/v3/once-processes.test.ts',
  'test/manager/once/processes.test.ts',
  'test/recipe/blocked-holder.test.ts',
  'test/both/lock.test.ts',
  'test/server/differential.test.ts',
  'test/v3/blocked-holder.test.ts',
  'test/v3/lock.test.ts',
  'test/v2/contract.test.ts',
  'test/python/contract.test.ts',
];

/** Number of long files to begin with: half of the workers. */
const LONG_AT_FIRST = 3;
/** Number of other files between two further long ones. */
const OTHERS_BETWEEN = 6;

/**
 * Runs the long files early, so that none of them is left alone at the end, but not all at once, because together they leave the
 * processors idle. Otherwise, larger files come first.
 */
class LongFilesEarly extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const rankOf = ({ moduleId }: TestSpecification) => LONG.findIndex((file) => moduleId.endsWith(file));
    const sorted = await super.sort(files);
    const long = sorted.filter((file) => rankOf(file) >= 0).sort((one, other) => rankOf(one) - rankOf(other));
    const others = sorted.filter((file) => rankOf(file) < 0);
    const mixed = long.splice(0, LONG_AT_FIRST);
    for (const file of others) {
      mixed.push(file);
      if (mixed.length % (OTHERS_BETWEEN + 1) === 0) mixed.push(...long.splice(0, 1));
    }
    return [...mixed, ...long];
  }
}

/** Tests of etcd v3 whose outcome does not depend on the version of a real server. */
const ON_ANY_VERSION = [
  'test/v3/{bad-answers,blocked-holder,errors,gateway-3.3,messages,request-rate,too-many-requests,transactions}.test.ts',
];

/** What python-etcd's `Lock` must do as before, though a bridge is its etcd. */
const THROUGH_A_BRIDGE = ['compat/{turns,counter,adoption,names,readers-writers,transcripts}.test.ts'];

/** The tests of etcd v3 on a version of etcd that `npm run peers` has built, instead of the etcd on the PATH. */
const onVersion = (version: '3.5' | '3.6'): TestProjectConfiguration[] => {
  const setup = {
    setupFiles: ['compat/peers/versions/setup.ts'],
    globalSetup: ['test/support/global-build.ts', 'test/support/global-python.ts', 'compat/peers/versions/server.ts'],
  };
  return [
    {
      extends: true,
      test: {
        name: `peers-${version}`,
        include: ['test/v3/**/*.test.ts', 'test/server/bridge/{client,keys,python,service,transcripts,users}.test.ts'],
        exclude: ON_ANY_VERSION,
        provide: { etcdVersion: version },
        ...setup,
      },
    },
    {
      extends: true,
      test: {
        name: `peers-bridge-${version}`,
        include: THROUGH_A_BRIDGE,
        provide: { etcdVersion: version },
        setupFiles: setup.setupFiles,
        globalSetup: [
          'test/support/global-build.ts',
          'test/support/global-python.ts',
          'compat/peers/versions/bridge.ts',
        ],
      },
    },
    {
      extends: true,
      test: {
        name: `peers-faults-${version}`,
        include: [
          'test/faults/{short-round,leader-killed,follower-killed,leader-stopped,two-killed,rolling-restart}.test.ts',
          // etcd 3.6 has no v2 to move from.
          ...(version === '3.5' ? [...SHORT_MOVING, ...UPGRADE] : []),
        ],
        provide: { etcdVersion: version, faultsApi: 'v3' },
        ...setup,
        ...AFTER_THE_OTHERS,
      },
    },
  ];
};

/** The fault tests on one API of etcd. */
const faults = (
  faultsApi: 'v2' | 'v3',
  files: { include: string[]; exclude?: string[] },
  name: string = faultsApi,
): TestProjectConfiguration => ({
  extends: true,
  test: {
    name: `faults-${name}`,
    ...files,
    provide: { faultsApi },
    globalSetup: ['test/support/global-build.ts', 'test/support/global-python.ts', 'test/support/global-etcd.ts'],
    ...AFTER_THE_OTHERS,
  },
});

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
            'test/manager/once/{bound,options,schedule}.test.ts',
            'test/manager/{limit,several}.test.ts',
            'test/recipe/{after-timeout,holder,limits,rules}.test.ts',
            'test/v2/locks/rules.test.ts',
            'test/v2/locks/enter-timeout.test.ts',
            'test/v2/locks/unclear.test.ts',
            'test/v2/locks/change-wait.test.ts',
            'test/manager/waiter.test.ts',
            // these measure what very many requests of one client use, whatever the server,
            'test/manager/{leaks,load,scale}.test.ts',
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
            // These start both servers, or need many events that others would not survive.
            'compat/client.test.ts',
            'compat/cleared-history.test.ts',
            'compat/record.test.ts',
            'test/v2/locks/lost-wakeup.test.ts',
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
          name: 'bridge',
          include: THROUGH_A_BRIDGE,
          globalSetup: [
            'test/support/global-build.ts',
            'test/support/global-python.ts',
            'test/support/global-bridge.ts',
          ],
        },
      },
      ...onVersion('3.5'),
      ...onVersion('3.6'),
      faults('v2', { include: ALL, exclude: [...ONLY_V3, ...NOT_NAMED] }),
      faults('v3', chosen ? { include: ALL, exclude: [...ONLY_V2, ...NOT_NAMED] } : { include: SHORT }),
      faults('v3', { include: chosen ? BRIDGE : SHORT_BRIDGE }, 'bridge'),
      faults('v3', { include: chosen ? MOVING : SHORT_MOVING, exclude: UPGRADE }, 'moving'),
      {
        extends: true,
        test: {
          name: 'peers',
          include: ['compat/peers/**/*.test.ts'],
          globalSetup: ['test/support/global-build.ts', 'test/support/global-python.ts', 'compat/peers/servers.ts'],
        },
      },
    ],
    setupFiles: ['test/support/setup.ts'],
    // Only a test that hangs takes so long, however busy the machine.
    testTimeout: 240_000,
    hookTimeout: 240_000,
    sequence: { sequencer: LongFilesEarly },
    // More than there are processors: most of the time the tests wait.
    maxWorkers: 6,
  },
});
