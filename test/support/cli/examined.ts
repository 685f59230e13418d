/** An installation on SQLite that tests of the doctor break in different ways. */
import { chmod, cp, mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { after, type TestContext } from 'node:test';
import { type Config, readConfig } from '../../../src/config/config.ts';
import { misspelledVariables } from '../../../src/config/sources.ts';
import { applyWorkflows } from '../../../src/definitions/apply.ts';
import { CHECKS } from '../../../src/doctor/checks.ts';
import { examineInstallation } from '../../../src/doctor/doctor.ts';
import type { Finding } from '../../../src/model/finding.ts';
import { silentLogger } from '../../../src/observe/log.ts';
import { openStore } from '../../../src/store/open.ts';
import type { Store } from '../../../src/store/store.ts';
import { openSealer } from '../../../src/teams/encryption-key.ts';

export interface Installation {
  directory: string;
  /** The data directory. */
  data: string;
  config: Config;
  /** Reads the settings again, with additional variables. */
  configure(environment: Record<string, string>): Config;
  /** The findings of these checks. */
  look(names: readonly string[], other?: Partial<Looking>): Promise<Finding[]>;
  /** The finding of one check. */
  find(name: string, other?: Partial<Looking>): Promise<Finding>;
  /** Opens the store for some work, and closes it afterwards. */
  withStore(work: (store: Store) => Promise<void>, clock?: () => number): Promise<void>;
}

/** A data directory after the first start. It is made once and copied. */
const template = await makeTemplate();

async function makeTemplate(): Promise<string> {
  const directory = await mkdtemp(join(tmpdir(), 'flowhook-template-'));
  after(() => rm(directory, { recursive: true, force: true }));
  const config = readConfig({}, { FLOWHOOK_DATA: directory }, directory);
  const store = await openStore(config.databaseUrl, {
    publicUrl: () => '',
    log: silentLogger,
    synchronous: 'OFF',
  });
  await store.teams.ensure({ slug: 'default' });
  await openSealer(config, store);
  await store.close();
  return directory;
}

interface Looking {
  settings: Config;
  online: readonly string[] | null;
  isFull: boolean;
}

/** @param workflows files by their path below the workflows directory. They are applied */
export async function makeInstallation(
  t: TestContext,
  workflows: Record<string, string> = {},
): Promise<Installation> {
  const directory = await mkdtemp(join(tmpdir(), 'flowhook-installation-'));
  t.after(() => rm(directory, { recursive: true, force: true }));
  const data = join(directory, 'data');
  await mkdir(join(directory, 'workflows'));
  for (const [path, text] of Object.entries(workflows)) {
    await mkdir(dirname(join(directory, 'workflows', path)), { recursive: true });
    await writeFile(join(directory, 'workflows', path), text);
  }
  const configure = (environment: Record<string, string>) =>
    readConfig({}, { FLOWHOOK_PORT: '0', ...environment }, directory);
  const config = configure({});
  const withStore: Installation['withStore'] = async (work, clock = Date.now) => {
    const store = await openStore(config.databaseUrl, {
      clock,
      publicUrl: () => '',
      log: silentLogger,
      synchronous: 'OFF',
    });
    try {
      await work(store);
    } finally {
      await store.close();
    }
  };
  await cp(template, data, { recursive: true });
  await chmod(data, 0o700);
  if (Object.keys(workflows).length > 0) {
    await withStore(async (store) => {
      await applyWorkflows(store, {
        directory: config.workflowsDirectory,
        prune: false,
        force: false,
        runAs: undefined,
        log: silentLogger,
      });
    });
  }
  const look: Installation['look'] = async (names, other = {}) => {
    const { settings = config, online = null, isFull = false } = other;
    const doubts = misspelledVariables(settings.environment);
    const checks = CHECKS.filter(({ name }) => names.includes(name));
    return (await examineInstallation({ settings, doubts, online, isFull }, { checks })).findings;
  };
  return {
    directory,
    data,
    config,
    configure,
    look,
    withStore,
    async find(name, other) {
      const [finding] = await look([name], other);
      if (finding === undefined) throw new Error(`There is no check ${name}`);
      return finding;
    },
  };
}
