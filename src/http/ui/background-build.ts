/** Builds the dashboard or the guide while the service runs, in a clone where the build is missing or outdated. */
import { type ChildProcess, spawn } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { readFile, rename, rm } from 'node:fs/promises';
import { setPriority } from 'node:os';
import { join } from 'node:path';
import type { Logger } from '../../observe/log.ts';
import { type BuildTarget, DASHBOARD } from './build-targets.ts';
import { INDEX } from './built-files.ts';
import type { BuildState } from './placeholder-page.ts';
import { hashOfSources, SOURCES_MARK } from './sources.ts';

/** The build yields to everything else on this machine. */
const NICENESS = 10;
/** Characters of the output of a failed build that are logged. */
const MAX_SAID = 2_000;
const MAX_TRIES = 10;

/**
 * The build runs in a child process and writes to a directory of its own, which replaces the old one when complete: half
 * a build is never served, and two services can build at once.
 */
export class BackgroundBuild {
  readonly #what: BuildTarget;
  readonly #root: string;
  readonly #log: Logger;
  readonly #environment: ReadonlyMap<string, string>;
  #state: BuildState = 'none';
  #child: ChildProcess | undefined;
  #work: Promise<void> | undefined;
  #isStopped = false;

  /**
   * @param input.root of the repository, or of the package, which has no sources to build from
   * @param input.what the dashboard by default
   */
  constructor(input: {
    root: string;
    log: Logger;
    environment: ReadonlyMap<string, string>;
    what?: BuildTarget;
  }) {
    this.#what = input.what ?? DASHBOARD;
    this.#root = input.root;
    this.#log = input.log;
    this.#environment = input.environment;
  }

  get state(): BuildState {
    return this.#state;
  }

  /** Builds if necessary. Resolves when that is done; never rejects. */
  start(): Promise<void> {
    this.#work ??= this.#run().catch((err) => {
      this.#state = 'failed';
      if (!this.#isStopped) this.#log.error({ err }, `${this.#what.name}.not_built`);
    });
    return this.#work;
  }

  /** Kills a running build. */
  async stop(): Promise<void> {
    this.#isStopped = true;
    this.#child?.kill('SIGKILL');
    await this.#work;
  }

  async #run(): Promise<void> {
    const command = this.#what.command(this.#root);
    if (command === undefined) return;
    // Set before the sources are hashed, so that early visitors are told to wait rather than that nothing is there.
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
      // Another service may have been quicker: its files stay, since pages that are open already refer to them.
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
      // Another service may have moved its build there in between.
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

/** Swallows an error with this code. */
function unlessCode(code: string | false): (error: NodeJS.ErrnoException) => void {
  return (error) => {
    if (error.code !== code) throw error;
  };
}
