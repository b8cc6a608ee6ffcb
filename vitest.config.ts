import { defineConfig, type TestProjectConfiguration } from 'vitest/config';
import { BaseSequencer, type TestSpecification } from 'vitest/node';

/**
 * The tier of a test is its folder:
 * - `pure/` needs no server, no process and no time: `npm run quick`.
 * - `long/` needs much time or processor time, or rare programs: `npm run test:all`.
 * - All others: `npm test`.
 *
 * `alone/` needs a process of its own, because it counts what keeps the process alive or replaces modules. `contract/` has the suites that
 * each store must pass. `test/faults/` is long, but for `test/faults/short/`.
 */
const PURE = 'test/**/pure/**/*.test.ts';
const LONG = '{test,compat}/**/long/**/*.test.ts';
const ALONE = 'test/**/alone/**/*.test.ts';

/** For files that need no process of their own: importing everything anew for each takes longer than many of the tests. */
const ONE_PROCESS = { isolate: false } as const;

/** What runs of the fault tests: `npm run faults` and `npm run soak` set it. Otherwise only few run on etcd v3. */
const chosen = process.env['FAULTS'];

const ALL = ['test/faults/*.test.ts'];
const BRIDGE = ['test/faults/bridge/*.test.ts'];
const SHORT_BRIDGE = ['test/faults/bridge/members.test.ts'];
const MOVING = ['test/faults/moving/*.test.ts'];
const SHORT_MOVING = ['test/faults/moving/short.test.ts'];
/** Needs what `npm run peers` builds. */
const UPGRADE = ['test/faults/moving/upgrade.test.ts'];
const SHORT = ['test/faults/short/*.test.ts'];

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
/** Two killed members are like two stopped ones, or all of them killed. */
const ONLY_CHOSEN = chosen ? [] : ['test/faults/two-killed.test.ts'];

// Groups run one after another, each with a number of workers: that at the end of this file, unless it has its own.
/** For what `npm test` runs: more workers than there are processors, because most of the time these tests wait. */
const SHORT_TESTS = { maxWorkers: 9, sequence: { groupOrder: 0 } };
const LONG_TESTS = { sequence: { groupOrder: 1 } };
/** These load the machine more than others: each file has a cluster, and processes that contend for locks. */
const FAULT_TESTS = { sequence: { groupOrder: 2 } };
/** Vitest runs no file of a group with a negative number, and says nothing. */
const PURE_TESTS = { maxWorkers: 2, sequence: { groupOrder: 3 } };

/** These use all processors, so nothing that has to be in time runs beside them. */
const SIMULATION_TESTS = { maxWorkers: 1, sequence: { groupOrder: 4 } };

type Group = Partial<typeof SHORT_TESTS>;

/** Small files whose tests take long. */
const SLOW =
  /\/((all|two)-(killed|stopped)|(follower|leader)-(isolated|stopped)|short-outage|request-rate|peers\/(counter|turns))\.test\.ts$/;

/**
 * Runs the files of `contract/` and `short/`, slow files and those of `long/` first, so that none of them is left alone at the end.
 * Otherwise, larger files come first.
 */
class LongFilesFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const rankOf = ({ moduleId }: TestSpecification): number => {
      if (/\/(contract|short)\//.test(moduleId) || SLOW.test(moduleId)) return 0;
      return moduleId.includes('/long/') ? 1 : 2;
    };
    return (await super.sort(files)).sort((one, other) => rankOf(one) - rankOf(other));
  }
}

/** Tests of etcd v3 whose outcome does not depend on the version of a real server. */
const ON_ANY_VERSION = [
  'test/v3/{bad-answers,gateway-3.3,request-rate}.test.ts',
  'test/v3/long/{blocked-holder,once-processes,too-many-requests}.test.ts',
  PURE,
];

/** What python-etcd's `Lock` must do as before, though a bridge is its etcd. */
const THROUGH_A_BRIDGE = ['compat/{turns,counter,adoption,names,readers-writers,transcripts}.test.ts'];

/** How clients reach etcd: sockets, certificates, passwords, members and paths that the server decides about. */
const CONNECTIONS = [
  'test/http/{paths,unix-sockets}.test.ts',
  'test/http/long/{changed-certificates,changed-password,followed-members,server-name}.test.ts',
];

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
        include: [
          'test/v3/**/*.test.ts',
          'test/server/bridge/{client,keys,service,transcripts}.test.ts',
          'test/server/bridge/long/{python,users}.test.ts',
          ...CONNECTIONS,
        ],
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
          ...SHORT,
          'test/faults/{leader-killed,follower-killed,rolling-restart}.test.ts',
          // etcd 3.6 has no v2 to move from.
          ...(version === '3.5' ? [...SHORT_MOVING, ...UPGRADE] : ['test/faults/{leader-stopped,two-killed}.test.ts']),
        ],
        provide: { etcdVersion: version, faultsApi: 'v3' },
        ...setup,
        ...FAULT_TESTS,
      },
    },
  ];
};

/** Tests that find an etcd with both APIs under `inject('etcd')`. */
const onEtcd = (
  name: string,
  { include, exclude = [], ...rest }: Group & { include: string[]; exclude?: string[]; isolate?: false },
): TestProjectConfiguration => ({
  extends: true,
  test: {
    name,
    include,
    ...rest,
    exclude: [...exclude, 'test/faults/**', 'test/simulation/**', 'test/browser/**', 'compat/peers/**'],
    globalSetup: ['test/support/global-build.ts', 'test/support/global-python.ts', 'test/support/global-etcd.ts'],
  },
});

/** The fault tests on one API of etcd. */
const faults = (
  faultsApi: 'v2' | 'v3',
  files: { include: string[]; exclude?: string[] } & Group,
  name: string = faultsApi,
): TestProjectConfiguration => ({
  extends: true,
  test: {
    name: `faults-${name}`,
    ...FAULT_TESTS,
    ...files,
    provide: { faultsApi },
    globalSetup: ['test/support/global-build.ts', 'test/support/global-python.ts', 'test/support/global-etcd.ts'],
  },
});

export default defineConfig({
  test: {
    // A project's setup runs before the root's, so each builds for itself.
    projects: [
      {
        extends: true,
        test: {
          name: 'pure',
          include: [PURE],
          ...ONE_PROCESS,
          ...PURE_TESTS,
        },
      },
      onEtcd('etcd', {
        include: ['test/**/*.test.ts', 'compat/**/*.test.ts'],
        exclude: [PURE, LONG, ALONE],
        ...ONE_PROCESS,
        ...SHORT_TESTS,
      }),
      onEtcd('alone', { include: [ALONE], ...SHORT_TESTS }),
      onEtcd('long', { include: [LONG], ...LONG_TESTS }),
      {
        extends: true,
        test: {
          name: 'embedded',
          ...ONE_PROCESS,
          ...LONG_TESTS,
          include: [
            'test/{recipe,manager,metrics,python,v2/locks}/**/*.test.ts',
            'test/{v3,both/long}/contract/*.test.ts',
            'test/server/bridge/{client,keys,service,transcripts}.test.ts',
            'compat/**/*.test.ts',
          ],
          exclude: [
            PURE,
            '{test,compat}/**/long/*.test.ts',
            ALONE,
            // These bring their own store or server,
            'test/recipe/contract/**',
            'test/recipe/{due,refused-servers}.test.ts',
            'test/manager/several.test.ts',
            'test/v2/locks/odd-proxies.test.ts',
            // this starts both servers,
            'compat/client.test.ts',
            // and these need what `npm run peers` builds.
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
          ...LONG_TESTS,
          include: THROUGH_A_BRIDGE,
          globalSetup: [
            'test/support/global-build.ts',
            'test/support/global-python.ts',
            'test/support/global-bridge.ts',
          ],
        },
      },
      {
        extends: true,
        test: { name: 'simulation', include: ['test/simulation/*.test.ts'], ...SIMULATION_TESTS },
      },
      ...onVersion('3.5'),
      ...onVersion('3.6'),
      faults('v2', { include: ALL, exclude: [...NOT_NAMED, ...ONLY_CHOSEN] }),
      chosen
        ? faults('v3', { include: [...ALL, ...SHORT], exclude: [...ONLY_V2, ...NOT_NAMED] })
        : faults('v3', { include: SHORT, ...SHORT_TESTS }),
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
      {
        extends: true,
        test: {
          name: 'peers-ui',
          include: ['test/browser/*.test.ts'],
          globalSetup: ['test/support/global-build.ts', 'test/support/global-python.ts', 'test/support/global-etcd.ts'],
          ...LONG_TESTS,
        },
      },
      { extends: true, test: { name: 'peers-site', include: ['scripts/site/test/*.test.ts'], ...LONG_TESTS } },
    ],
    setupFiles: ['test/support/setup.ts'],
    // Only a test that hangs takes so long, however busy the machine.
    testTimeout: 240_000,
    hookTimeout: 240_000,
    sequence: { sequencer: LongFilesFirst },
    maxWorkers: 6,
  },
});
