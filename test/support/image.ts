/**
 * Builds the image from the Dockerfile with buildah, and runs containers with runc, as a Docker daemon would. In place of
 * `node:26-slim` the base image is made here, of Debian's packages, the repository's Node and the machine's npm.
 */
import { execFile, spawn, spawnSync } from 'node:child_process';
import { mkdirSync, writeFileSync } from 'node:fs';
import { appendFile, chown, cp, mkdir, mkdtemp, readFile, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { atEnd } from './at-end.ts';
import { type Ended, listenTo, type Started } from './cli/commands.ts';
import { newcomerIn } from './cli/newcomer.ts';
import { inPath } from './in-path.ts';

const ROOT = join(import.meta.dirname, '../..');
/** The user `node` of the base image. */
const NODE_USER = 1000;
const CERTIFICATES = '/etc/ssl/certs';
const BASE = 'localhost/base';
const run = promisify(execFile);

/** The part of the image's configuration that a container runtime uses. */
interface ImageConfig {
  User: string;
  Env: string[];
  Entrypoint: string[];
  Cmd: string[];
  WorkingDir: string;
  Healthcheck: { Test: string[] };
  StopSignal: string;
}

export interface Image {
  config: ImageConfig;
  /** Size of the files that the Dockerfile adds to the base image. */
  addedBytes: number;
  /** An empty directory that outlives containers. Removed with the image. */
  scratch: string;
  run(options: ContainerOptions): Container;
  remove(): Promise<void>;
}

export interface ContainerOptions {
  /** Default: the command of the image. */
  command?: readonly string[];
  /** Default: the user of the image. */
  user?: number;
  readOnly?: boolean;
  mounts: readonly Mount[];
}

/** `source` is a directory of this machine. Without it, the mount is a temporary file system. */
export interface Mount {
  destination: string;
  source?: string;
  options: readonly string[];
}

export interface Container extends Started {
  /** Runs a command in the container, as its user. */
  exec(command: readonly string[]): Promise<Ended>;
  /** Sends the image's stop signal to the first process. */
  stop(): Promise<Ended>;
}

/** Returns why the image cannot be built on this machine; undefined if it can. */
export function whyNotHere(): string | undefined {
  if (process.getuid?.() !== 0) return 'this user is not root';
  const missing = ['buildah', 'mmdebstrap', 'runc', 'npm'].filter((name) => inPath(name) === undefined);
  if (missing.length > 0) return `not installed: ${missing.join(', ')}`;
  const { status } = spawnSync('unshare', ['--mount', '--pid', '--net', '--ipc', '--uts', '--fork', 'true']);
  return status === 0 ? undefined : 'this machine does not allow containers';
}

/** Builds the image. @throws Error with the end of the builder's output */
export async function buildImage(): Promise<Image> {
  const directory = await mkdtemp(join(tmpdir(), 'flowhook-image-'));
  const storage = ['--storage-driver', 'vfs', '--root', join(directory, 'storage')];
  const buildah = async (...args: string[]) => {
    const all = [...storage, '--runroot', join(directory, 'runroot'), ...args];
    const { stdout } = await run('buildah', all, { cwd: ROOT, maxBuffer: 64_000_000 });
    return stdout.trim();
  };
  try {
    const base = await buildah('from', 'scratch');
    const baseRoot = await buildah('mount', base);
    await fillBase(baseRoot);
    const baseBytes = await sizeOf(baseRoot);
    await buildah('commit', '--quiet', '--rm', base, BASE);
    await buildah(
      ...[
        'build',
        '--isolation',
        'chroot',
        '--format',
        'docker',
        '--pull-never',
        '--build-arg',
        `BASE=${BASE}`,
      ],
      // The certificates that the machine trusts, which a proxy may need.
      ...['--volume', `${CERTIFICATES}:${CERTIFICATES}:ro`, '--tag', 'flowhook', '.'],
    );
    const { Docker } = JSON.parse(await buildah('inspect', '--type', 'image', 'flowhook')) as {
      Docker: { config: ImageConfig };
    };
    const root = await buildah('mount', await buildah('from', '--pull-never', 'flowhook'));
    const scratch = join(directory, 'scratch');
    await mkdir(scratch);
    return {
      config: Docker.config,
      addedBytes: (await sizeOf(root)) - baseBytes,
      scratch,
      run: (options) => startContainer({ directory, root, config: Docker.config, ...options }),
      remove: () => rm(directory, { recursive: true, force: true }),
    };
  } catch (error) {
    await rm(directory, { recursive: true, force: true });
    throw error;
  }
}

/** Fills a directory with what `node:26-slim` has. */
async function fillBase(root: string): Promise<void> {
  const suite = /^VERSION_CODENAME=(\w+)$/m.exec(await readFile('/etc/os-release', 'utf8'))?.[1] ?? 'stable';
  await run('mmdebstrap', [
    ...['--mode=root', '--variant=apt', '--include=libatomic1', '--quiet'],
    // As in Debian's images for containers.
    ...['--dpkgopt=path-exclude=/usr/share/doc/*', '--dpkgopt=path-exclude=/usr/share/man/*'],
    ...['--dpkgopt=path-exclude=/usr/share/locale/*', '--aptopt=Dir::Cache::pkgcache ""'],
    ...['--aptopt=Dir::Cache::srcpkgcache ""', suite, root],
  ]);
  const local = join(root, 'usr/local');
  await cp(process.execPath, join(local, 'bin/node'));
  const machine = { cwd: '/', env: newcomerIn(process.env.HOME ?? '/') };
  const { stdout: modules } = await run('npm', ['root', '--global'], machine);
  await cp(join(modules.trim(), 'npm'), join(local, 'lib/node_modules/npm'), { recursive: true });
  await symlink('../lib/node_modules/npm/bin/npm-cli.js', join(local, 'bin/npm'));
  const { stdout: registry } = await run('npm', ['config', 'get', 'registry'], machine);
  await mkdir(join(local, 'etc'), { recursive: true });
  await writeFile(
    join(local, 'etc/npmrc'),
    `registry=${registry.trim()}\ncafile=${CERTIFICATES}/ca-certificates.crt\n`,
  );
  await appendFile(join(root, 'etc/passwd'), `node:x:${NODE_USER}:${NODE_USER}::/home/node:/bin/sh\n`);
  await appendFile(join(root, 'etc/group'), `node:x:${NODE_USER}:\n`);
  await mkdir(join(root, 'home/node'));
  await chown(join(root, 'home/node'), NODE_USER, NODE_USER);
}

async function sizeOf(directory: string): Promise<number> {
  const { stdout } = await run('du', ['--summarize', '--bytes', directory]);
  return Number.parseInt(stdout, 10);
}

let containers = 0;

function startContainer({
  directory,
  root,
  config,
  command = config.Cmd,
  user = NODE_USER,
  readOnly = false,
  mounts,
}: ContainerOptions & { directory: string; root: string; config: ImageConfig }): Container {
  containers += 1;
  const id = `flowhook-${process.pid}-${containers}`;
  const bundle = join(directory, id);
  mkdirSync(bundle);
  const configuration = {
    ociVersion: '1.0.0',
    process: {
      user: { uid: user, gid: user },
      args: [...config.Entrypoint, ...command],
      env: config.Env,
      cwd: config.WorkingDir,
      capabilities: {},
      noNewPrivileges: true,
    },
    root: { path: root, readonly: readOnly },
    mounts: [
      { destination: '/proc', type: 'proc', source: 'proc' },
      { destination: '/dev', type: 'tmpfs', source: 'tmpfs', options: ['nosuid', 'mode=755'] },
      ...mounts.map(({ destination, source, options }) =>
        source === undefined
          ? { destination, type: 'tmpfs', source: 'tmpfs', options }
          : { destination, type: 'bind', source, options: ['bind', ...options] },
      ),
    ],
    // A network of its own, with only the loopback interface: the port of the image is free there.
    linux: { namespaces: ['pid', 'mount', 'ipc', 'uts', 'network'].map((type) => ({ type })) },
  };
  writeFileSync(join(bundle, 'config.json'), JSON.stringify(configuration));
  const runc = (...args: string[]) => {
    const child = spawn('runc', ['--root', join(directory, 'runc'), ...args]);
    child.stdin.end();
    return listenTo(child);
  };
  const container = runc('run', '--bundle', bundle, id);
  atEnd(() => runc('delete', '--force', id).ended);
  return {
    ...container,
    exec: (args) => runc('exec', id, ...args).ended,
    async stop() {
      await runc('kill', id, config.StopSignal).ended;
      return container.ended;
    },
  };
}
