/** Builds the dashboard or the guide while the service runs, in a clone whose build is missing or outdated. */
import { type ChildProcess, spawn } from 'node:child_process';
import { createHash, randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { readdir, readFile, rename, rm } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { setPriority } from 'node:os';
import { dirname, join, relative, sep } from 'node:path';
import type { Logger } from '../../observe/log.ts';

/** The build has a lower priority than everything else on the machine. */
const NICENESS = 10;
/** Characters of a failed build's output that are logged. */
const MAX_OUTPUT = 2_000;
const MAX_TRIES = 10;

/** `none`: no build is running, because it is done or not possible here. */
export type BuildState = 'none' | 'building' | 'failed';

export interface BuildTarget {
  /** The name in the log and on pages. */
  name: 'dashboard' | 'guide';
  /** A directory below the root. The build is written to `dist` in it. */
  folder: string;
  /** The source files and directories, below the root. */
  inputs: readonly string[];
  /**
   * Node's arguments for the build, without `--outDir`. Undefined if the sources or the tools are missing, as in the
   * published package.
   *
   * @param root the root of the repository
   */
  command(root: string): string[] | undefined;
}

export const DASHBOARD: BuildTarget = {
  name: 'dashboard',
  folder: 'dashboard',
  inputs: [
    ...['index.html', 'package.json', 'vite.config.ts', 'public', 'src'].map((name) => `dashboard/${name}`),
    'client/src',
    'package-lock.json',
  ],
  command(root) {
    const manifest = join(root, 'dashboard', 'package.json');
    if (!existsSync(manifest) || !existsSync(join(root, 'dashboard', 'src'))) return undefined;
    const found = resolved(manifest, 'vite/package.json');
    if (found === undefined) return undefined;
    return [join(dirname(found), 'bin', 'vite.js'), 'build', '--emptyOutDir', '--logLevel', 'warn'];
  },
};

export const GUIDE: BuildTarget = {
  name: 'guide',
  folder: 'site',
  inputs: [
    'docs',
    'package.json',
    ...['assets', 'build.ts', 'pages.ts', 'render.ts', 'slug.ts', 'template.ts'].map(
      (name) => `site/${name}`,
    ),
  ],
  command(root) {
    const program = join(root, 'site', 'build.ts');
    return existsSync(program) && resolved(program, 'marked') !== undefined ? [program] : undefined;
  },
};

function resolved(from: string, name: string): string | undefined {
  try {
    return createRequire(from).resolve(name);
  } catch {
    return undefined;
  }
}

/**
 * The build runs in a child process and writes to its own directory, which replaces the previous build when complete.
 * A partial build is never served, and two services can build at the same time.
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
   * @param input.root the root of the repository, or of the installed package, in which case there are no sources to build
   * @param input.what default: the dashboard
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

  /** Builds if necessary. Resolves when the build is done; never rejects. */
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
    const { name, inputs, command: commandIn } = this.#what;
    const command = commandIn(this.#root);
    if (command === undefined) return;
    // Set before the sources are hashed, so that early visitors see that the pages are being built, not that they are
    // missing.
    this.#state = 'building';
    const hash = await hashOfSources(this.#root, inputs);
    if (!(await this.#isBuiltOf(hash)) && !this.#isStopped) {
      const fromMs = performance.now();
      this.#log.info({ in: this.#place('dist') }, `${name}.build_started`);
      const made = this.#place('.build', randomUUID());
      try {
        await this.#build(command, made);
        // Another service may have been faster. Its files stay, because open pages already refer to them.
        if (!(await this.#isBuiltOf(hash))) await this.#replace(made);
      } finally {
        await rm(made, { recursive: true, force: true });
      }
      this.#log.info({ ms: Math.round(performance.now() - fromMs) }, `${name}.built`);
    }
    this.#state = 'none';
  }

  async #isBuiltOf(hash: string): Promise<boolean> {
    if (!existsSync(this.#place('dist', INDEX))) return false;
    const mark = await readFile(this.#place('dist', SOURCES_MARK), 'utf8').catch(() => '');
    return mark.trim() === hash;
  }

  async #build(command: readonly string[], into: string): Promise<void> {
    const passed = ['PATH', 'HOME', 'TMPDIR'].filter((name) => this.#environment.has(name));
    const environment = Object.fromEntries(passed.map((name) => [name, this.#environment.get(name)]));
    const child = spawn(process.execPath, [...command, '--outDir', into], {
      cwd: this.#place(),
      env: { ...environment, NODE_ENV: 'production' },
      stdio: ['ignore', 'pipe', 'pipe'],
    });
    this.#child = child;
    let output = '';
    for (const stream of [child.stdout, child.stderr]) {
      stream.setEncoding('utf8').on('data', (text: string) => {
        output = (output + text).slice(-MAX_OUTPUT);
      });
    }
    if (child.pid !== undefined) setPriority(child.pid, NICENESS);
    const [code, signal] = (await once(child, 'close')) as [number | null, string | null];
    this.#child = undefined;
    if (code !== 0) throw new Error(`The build ended with ${signal ?? code}: ${output.trim()}`);
  }

  async #replace(made: string): Promise<void> {
    const [dist, old] = [this.#place('dist'), `${made}.old`];
    for (let tries = 1; ; tries++) {
      await rm(old, { recursive: true, force: true });
      await rename(dist, old).catch(unlessCode('ENOENT'));
      // Another service may have moved its build there in the meantime.
      const done = await rename(made, dist).then(() => true, unlessCode(tries < MAX_TRIES && 'ENOTEMPTY'));
      await rm(old, { recursive: true, force: true });
      if (done) return;
    }
  }

  #place(...parts: string[]): string {
    return join(this.#root, this.#what.folder, ...parts);
  }
}

/** Ignores errors with this code. */
function unlessCode(code: string | false): (error: NodeJS.ErrnoException) => void {
  return (error) => {
    if (error.code !== code) throw error;
  };
}

/** The first page of a build. A change of this file shows that there is a new build. */
export const INDEX = 'index.html';

/** Names of the files that `toolchain/compress.ts` compresses, except INDEX. */
export const TEXTS: RegExp = /\.(css|html|js|json|map|svg|webmanifest|yaml)$/;

/** The file in a build that contains the `hashOfSources` it was built from. */
export const SOURCES_MARK = '.sources';

/**
 * SHA-256, in hex, of the names and contents of all source files. It shows whether a build is up to date.
 *
 * @param root the root of the repository
 * @param inputs files and directories below it
 */
export async function hashOfSources(root: string, inputs: readonly string[]): Promise<string> {
  const files = (await Promise.all(inputs.map((input) => filesOf(join(root, input))))).flat();
  const hash = createHash('sha256');
  for (const path of files.sort()) {
    const bytes = await readFile(path);
    hash.update(`${relative(root, path).split(sep).join('/')} ${bytes.length}\n`).update(bytes);
  }
  return hash.digest('hex');
}

/** The path itself if it is a file, or all files below a directory; none if it does not exist. */
async function filesOf(path: string): Promise<string[]> {
  try {
    const entries = await readdir(path, { recursive: true, withFileTypes: true });
    return entries.filter((entry) => entry.isFile()).map((entry) => join(entry.parentPath, entry.name));
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code === 'ENOTDIR') return [path];
    if (code === 'ENOENT') return [];
    throw error;
  }
}
