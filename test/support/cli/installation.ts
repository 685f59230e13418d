/** The package, packed and installed in an empty directory, and the executable. */
import { execFile } from 'node:child_process';
import { copyFile, cp, mkdtemp, rm, symlink } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { newcomerIn } from './newcomer.ts';

const root = join(import.meta.dirname, '../../..');
const run = promisify(execFile);

export interface PackedService {
  /** The name of the tarball. */
  tarball: string;
  /** The packed files, with slashes, such as `bin/flowhook.js`. */
  files: string[];
  /** Size of the tarball, and of its files. */
  bytes: { packed: number; unpacked: number };
}

export interface Installation extends PackedService {
  /** The directory, which contained only the tarball before npm installed it. */
  directory: string;
  /** The command `flowhook`, as npm has linked it. */
  program: string;
  /** The environment of the user who has installed the package. */
  newcomer: Readonly<Record<string, string>>;
  remove(): Promise<void>;
}

/** The files and directories that the package is built from. */
const SOURCES = [
  ...['bin', 'client', 'dashboard', 'docs', 'site', 'src', 'templates', 'toolchain'],
  ...['package.json', 'tsconfig.json', '.npmrc'],
  ...['CHANGELOG.md', 'LICENSE', 'README.md', 'compose.yaml'],
];
const LEFT_OUT = /\/(dist|\.build)$|\.test\.tsx?$/;

interface Packed {
  filename: string;
  size: number;
  unpackedSize: number;
  files: { path: string }[];
}

/**
 * Copies the repository, and builds the copy, because other tests may read the files that are built in the repository.
 *
 * @param copy a directory, which is created if it is missing
 */
async function buildCopy(copy: string): Promise<void> {
  for (const name of SOURCES) {
    await cp(join(root, name), join(copy, name), {
      recursive: true,
      filter: (path) => !LEFT_OUT.test(path),
    });
  }
  await symlink(join(root, 'node_modules'), join(copy, 'node_modules'));
  await run('npm', ['run', '--silent', 'build'], { cwd: copy }).catch(({ stdout, stderr }) => {
    // The compiler prints its errors on standard output.
    throw new Error(`The package cannot be built:\n${stderr}${stdout.slice(-4_000)}`);
  });
}

/** Makes the executable in an empty directory, and returns its path. */
export async function makeExecutable(directory: string): Promise<string> {
  const copy = await mkdtemp(join(tmpdir(), 'flowhook-executable-'));
  try {
    await buildCopy(copy);
    await run(process.execPath, ['toolchain/executable.ts'], { cwd: copy });
    const program = join(directory, 'flowhook');
    await copyFile(join(copy, 'dist-executable', 'flowhook'), program);
    return program;
  } finally {
    await rm(copy, { recursive: true });
  }
}

/** Builds the package from the repository, and puts the tarball into the directory. */
export async function packService(directory: string): Promise<PackedService> {
  const copy = join(directory, 'copy');
  await buildCopy(copy);
  // Without `prepack`, which would build again and print text between the JSON.
  const { stdout } = await run(
    'npm',
    ['pack', '--ignore-scripts', '--json', '--pack-destination', directory],
    {
      cwd: copy,
      maxBuffer: 16_000_000,
    },
  );
  // npm prints a list up to version 11, and an object by name in later versions.
  const [packed] = Object.values(JSON.parse(stdout) as Packed[] | Record<string, Packed>);
  if (packed === undefined) throw new Error(`npm has packed nothing: ${stdout}`);
  await rm(copy, { recursive: true });
  return {
    tarball: packed.filename,
    files: packed.files.map(({ path }) => path),
    bytes: { packed: packed.size, unpacked: packed.unpackedSize },
  };
}

/** Packs the repository, and installs the tarball as a newcomer would. */
export async function installPackage(): Promise<Installation> {
  const directory = await mkdtemp(join(tmpdir(), 'flowhook-package-'));
  const packed = await packService(directory);
  const newcomer = newcomerIn(join(directory, 'home'));
  await run('npm', ['install', `./${packed.tarball}`], { cwd: directory, env: newcomer });
  return {
    ...packed,
    directory,
    program: join(directory, 'node_modules', '.bin', 'flowhook'),
    newcomer,
    remove: () => rm(directory, { recursive: true, force: true, maxRetries: 5 }),
  };
}
