/**
 * Runs a suite of tests: `node test/run.ts SUITE` (see the scripts in package.json). With TEST_FAILED=FILE the names of
 * failed test files are written to FILE, so that CI can run them again: `node test/run.ts SUITE FILE…` runs only these
 * files, one at a time, with the settings of the suite.
 */
import { spawnSync } from 'node:child_process';
import { join } from 'node:path';

const ROOT = join(import.meta.dirname, '..');

interface Suite {
  files: readonly string[];
  /** A module in test/support with the global setup that all files share. */
  setup?: string;
  /** Number of files that run concurrently. */
  concurrency: number;
  environment?: Readonly<Record<string, string>>;
}

/** Tests that `npm test` runs in a short form: the variable that sets their size, and the size that CI uses. */
const LONG_FORMS: readonly [file: string, variable: string, size: number | 'all'][] = [
  ['test/faults/crash.test.ts', 'CRASH_ROUNDS', 40],
  ['test/faults/queue-crash.test.ts', 'QUEUE_CRASH_ROUNDS', 40],
  ['test/faults/webhook-crash.test.ts', 'WEBHOOK_CRASH_ROUNDS', 40],
  ['test/faults/backup-crash.test.ts', 'BACKUP_CRASH_ROUNDS', 16],
  ['test/faults/mail-crash.test.ts', 'MAIL_CRASH_ROUNDS', 30],
  ['test/faults/quarantine-crash.test.ts', 'QUARANTINE_CRASH_ROUNDS', 40],
  ['test/faults/freshness-crash.test.ts', 'FRESHNESS_CRASH_ROUNDS', 20],
  ['test/faults/chaos.test.ts', 'CHAOS_JOBS', 120],
  ['test/api/document.test.ts', 'DOCUMENT_REQUESTS', 20_000],
  ['test/records/large-records.test.ts', 'LARGE_RECORDS', 600],
  ['test/records/push.test.ts', 'PUSH_RECORDS', 200_000],
  ['src/sources/http/large.test.ts', 'LARGE_MEGABYTES', 300],
  ['test/dashboard/axe.test.ts', 'AXE_LOOKS', 'all'],
  ['test/nodes/held-transaction.test.ts', 'HELD_JOBS', 800],
  ['test/quality/faults.test.ts', 'QUALITY_SOURCES', 'all'],
  ['test/quality/noise.test.ts', 'QUALITY_DAYS', 1_000],
  ['test/quality/published-noise.test.ts', 'QUALITY_VERSIONS', 1_000],
  ['test/operate/upgrade.test.ts', 'UPGRADE_VERSIONS', 'all'],
  ['test/docs/commands-guides.test.ts', 'GUIDES', 'all'],
  ['test/docs/examples-verify.test.ts', 'VERIFY_LANGUAGES', 'all'],
  ['test/rules/model.test.ts', 'RULE_RUNS', 10_000],
  ['test/rules/model-postgres.test.ts', 'RULE_RUNS', 3_000],
  ['test/rules/kill.test.ts', 'RULE_KILL_ROUNDS', 40],
  ['test/rules/kill-postgres.test.ts', 'RULE_KILL_ROUNDS', 40],
  ['src/store/sqlite/sqlite.test.ts', 'MODEL_RUNS', 60],
  ['src/store/postgres/postgres.test.ts', 'MODEL_RUNS', 60],
];

const SUITES: Readonly<Record<string, Suite>> = {
  all: {
    files: [
      'src/**/*.test.ts',
      'test/tidy.test.ts',
      'test/!(package|support)/*.test.ts',
      'client/test/*.test.ts',
      'dashboard/src/**/*.test.ts',
    ],
    setup: 'run/whole-suite',
    // Takes 319 s on two cores (306 s with six files at a time): many tests wait for other processes.
    concurrency: 4,
  },
  /** Tests over HTTP, on PostgreSQL. `all` includes tests of the contract and of crashes on PostgreSQL. */
  postgres: {
    files: [
      'api/events',
      'api/jobs',
      'api/keys',
      'api/usage',
      'api/webhooks',
      'http/conditional',
      'records/erase',
      'records/push',
      'records/read-query',
      'records/read-stream',
    ].map((name) => `test/${name}.test.ts`),
    setup: 'postgres',
    concurrency: 3,
    environment: { FLOWHOOK_TEST_STORE: 'postgres' },
  },
  /** On a distributed database, one cluster for each file. */
  citus: {
    files: [
      'src/store/postgres/citus.test.ts',
      'test/api/life-of-a-job.test.ts',
      'test/cli/database-distribute.test.ts',
      'test/contract/contract.test.ts',
      'test/faults/webhook-crash.test.ts',
      'test/nodes/chaos.test.ts',
      'test/nodes/shards.test.ts',
      'test/nodes/workers.test.ts',
    ],
    concurrency: 1,
    environment: { FLOWHOOK_TEST_STORE: 'citus' },
  },
  /** The package and the README. One file at a time, because the README uses fixed ports. */
  package: { files: ['test/package/*.test.ts'], concurrency: 1 },
  long: {
    files: LONG_FORMS.map(([file]) => file),
    setup: 'postgres',
    concurrency: 1,
    environment: Object.fromEntries(
      LONG_FORMS.map(([, variable, size]) => [variable, process.env[variable] ?? String(size)]),
    ),
  },
};

const [name = 'all', ...only] = process.argv.slice(2);
const suite = SUITES[name];
if (suite === undefined) {
  console.error(`There is no suite ${name}, only ${Object.keys(SUITES).join(', ')}`);
  process.exit(2);
}
if (name === 'citus') {
  const { WITHOUT_CITUS } = await import('./support/citus.ts');
  if (WITHOUT_CITUS !== false) {
    console.log(`Tests on Citus are skipped: ${WITHOUT_CITUS}`);
    process.exit(0);
  }
}
const failed = process.env.TEST_FAILED;
const { status } = spawnSync(
  process.execPath,
  [
    '--test',
    '--test-reporter=spec',
    '--test-reporter-destination=stdout',
    ...(failed === undefined
      ? []
      : ['--test-reporter=./test/support/run/failed-files.ts', `--test-reporter-destination=${failed}`]),
    ...(suite.setup === undefined ? [] : [`--test-global-setup=test/support/${suite.setup}.ts`]),
    `--test-concurrency=${only.length > 0 ? 1 : suite.concurrency}`,
    `--test-timeout=${name === 'long' ? 900_000 : 240_000}`,
    ...(only.length > 0 ? only : suite.files),
  ],
  {
    cwd: ROOT,
    stdio: 'inherit',
    env: {
      ...process.env,
      // Shared, because every file loads much of the service.
      NODE_COMPILE_CACHE: join(ROOT, 'node_modules', '.cache', 'compile'),
      ...suite.environment,
    },
  },
);
process.exitCode = status ?? 1;
