/** Builds pages beside a running service, in a clone where that was not done, or not since they were changed. */
import { type ChildProcess, spawn } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { readFile, rename, rm } from 'node:fs/promises';
import { setPriority } from 'node:os';
import { join } from 'node:path';
import type { Logger } from '../../observe/log.ts';
import type { BuildState } from './absent-page.ts';
import { type Buildable, DASHBOARD } from './buildables.ts';
import { INDEX } from './built-files.ts';
import { hashOfSources, SOURCES_MARK } from './sources.ts';

/** Whatever else this machine does comes first. */
const NICENESS = 10;
/** Of what the build said when it failed. */
const MAX_SAID = 2_000;
const MAX_TRIES = 10;

/**
 * Runs what builds them in a child process into a directory of its own, which takes the place of the old one when it is whole: so
 * that what is served is never half a build, and two services that build at once do each other no harm.
 */
export class BackgroundBuild {
  readonly #what: Buildable;
  readonly #root: string;
  readonly #log: Logger;
  readonly #environment: ReadonlyMap<string, string>;
  #state: BuildState = 'none';
  #child: ChildProcess | undefined;
  #work: Promise<void> | undefined;
  #isStopped = false;

  /**
   * @param input.root of the repository, or of the package, in which there is nothing to build from
   * @param input.what the dashboard unless told
   */
  constructor(input: {
    root: string;
    log: Logger;
    environment: ReadonlyMap<string, string>;
    what?: Buildable;
  }) {
    this.#what = input.what ?? DASHBOARD;
    this.#root = input.root;
    this.#log = input.log;
    this.#environment = input.environment;
  }

  get state(): BuildState {
    return this.#state;
  }

  /** Looks whether there is something to build, and builds. Resolves when that is over; never rejects. */
  start(): Promise<void> {
    this.#work ??= this.#run().catch((err) => {
      this.#state = 'failed';
      if (!this.#isStopped) this.#log.error({ err }, `${this.#what.name}.not_built`);
    });
    return this.#work;
  }

  /** Ends a build under way. */
  async stop(): Promise<void> {
    this.#isStopped = true;
    this.#child?.kill('SIGKILL');
    await this.#work;
  }

  async #run(): Promise<void> {
    const command = this.#what.command(this.#root);
    if (command === undefined) return;
    // Told from now on, so that nobody who comes while it is looked at is told that there is nothing.
    this.#state = 'building';
    const hash = await hashOfSources(this.#root, this.#what.inputs);
    if ((await this.#isBuiltOf(hash)) || this.#isStopped) {
      this.#state = 'none';
      return;
    }
    const fromMs = performance.now();
    this.#log.info({ in: this.#place('dist') }, `${this.#what.name}.build_begun`);
    const made = this.#place('.build', randomUUID());
    try {
      await this.#build(command, made);
      // Another service may have been quicker: pages that have been opened since keep what they were sent.
      if (!(await this.#isBuiltOf(hash))) await this.#replace(made);
    } finally {
      await rm(made, { recursive: true, force: true });
    }
    this.#state = 'none';
    this.#log.info({ ms: Math.round(performance.now() - fromMs) }, `${this.#what.name}.built`);
  }

  async #isBuiltOf(hash: string): Promise<boolean> {
    if (!existsSync(this.#place('dist', INDEX))) return false;
    const mark = await readFile(this.#place('dist', SOURCES_MARK), 'utf8').catch(() => '');
    return mark.trim() === hash;
  }

  async #build(command: readonly string[], into: string): Promise<void> {
    const child = spawn(process.execPath, [...command, '--outDir', into], {
      cwd: this.#place(),
      env: this.#childEnvironment(),
      stdio: ['ignore', 'pipe', 'pipe'],
    });
    this.#child = child;
    let said = '';
    for (const stream of [child.stdout, child.stderr]) {
      stream.setEncoding('utf8').on('data', (text: string) => {
        said = (said + text).slice(-MAX_SAID);
      });
    }
    if (child.pid !== undefined) setPriority(child.pid, NICENESS);
    const [code, signal] = (await once(child, 'close')) as [number | null, string | null];
    this.#child = undefined;
    if (code !== 0) throw new Error(`The build ended with ${signal ?? code}: ${said.trim()}`);
  }

  async #replace(made: string): Promise<void> {
    const [dist, old] = [this.#place('dist'), `${made}.old`];
    for (let tries = 1; ; tries++) {
      await rm(old, { recursive: true, force: true });
      await rename(dist, old).catch(unlessCode('ENOENT'));
      // Another service may have put its own there in between.
      const done = await rename(made, dist).then(() => true, unlessCode(tries < MAX_TRIES && 'ENOTEMPTY'));
      await rm(old, { recursive: true, force: true });
      if (done) return;
    }
  }

  #childEnvironment(): NodeJS.ProcessEnv {
    const passed = ['PATH', 'HOME', 'TMPDIR'].flatMap((name) => {
      const value = this.#environment.get(name);
      return value === undefined ? [] : [[name, value] as const];
    });
    return { ...Object.fromEntries(passed), NODE_ENV: 'production' };
  }

  #place(...parts: string[]): string {
    return join(this.#root, this.#what.folder, ...parts);
  }
}

/** Takes one kind of failure as an answer. */
function unlessCode(code: string | false): (error: NodeJS.ErrnoException) => void {
  return (error) => {
    if (error.code !== code) throw error;
  };
}
