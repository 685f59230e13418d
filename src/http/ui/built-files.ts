/** The files of a build: which exist, in which encodings, with their content types and digests. */
import { createHash } from 'node:crypto';
import { readdir, readFile, stat } from 'node:fs/promises';
import { extname, join, relative, sep } from 'node:path';

export const INDEX = 'index.html';

const MAX_TRIES = 3;

export type FileEncoding = 'br' | 'gzip' | 'identity';

export interface BuiltFile {
  /** The `Content-Type`. */
  type: string;
  /** SHA-256 of the uncompressed bytes, in hex. */
  digest: string;
  /** Whether its name changes with its content: then it may be cached for ever. */
  isHashed: boolean;
  /** Paths on disk by encoding, the best first. */
  paths: ReadonlyMap<FileEncoding, string>;
}

export interface BuiltFiles {
  /** By path below the directory, with slashes. Nothing else is sent. */
  files: ReadonlyMap<string, BuiltFile>;
  /** `index.html` as text. */
  index: string;
}

const TYPES: Readonly<Record<string, string>> = {
  '.css': 'text/css; charset=utf-8',
  '.html': 'text/html; charset=utf-8',
  '.ico': 'image/x-icon',
  '.js': 'text/javascript; charset=utf-8',
  '.json': 'application/json; charset=utf-8',
  '.map': 'application/json; charset=utf-8',
  '.png': 'image/png',
  '.svg': 'image/svg+xml',
  '.txt': 'text/plain; charset=utf-8',
  '.webmanifest': 'application/manifest+json',
  '.woff2': 'font/woff2',
  '.yaml': 'application/yaml; charset=utf-8',
};
/** The best first. */
const ENDINGS: readonly [ending: string, encoding: FileEncoding][] = [
  ['.br', 'br'],
  ['.gz', 'gzip'],
  ['', 'identity'],
];

/** The directory of a build, read again whenever its `index.html` has changed. */
export class BuiltDirectory {
  readonly #directory: string;
  #known: { mark: string; built: Promise<BuiltFiles> } | undefined;

  constructor(directory: string) {
    this.#directory = directory;
  }

  /** Its files; undefined when there is no build. */
  async look(): Promise<BuiltFiles | undefined> {
    for (let tries = 1; ; tries++) {
      try {
        return await this.#look();
      } catch (error) {
        // Another build replaced this one while it was read.
        if (tries === MAX_TRIES) throw error;
      }
    }
  }

  async #look(): Promise<BuiltFiles | undefined> {
    const found = await stat(join(this.#directory, INDEX)).catch(() => undefined);
    if (found === undefined) return undefined;
    const mark = `${found.ino} ${found.mtimeMs} ${found.size}`;
    // Requests that come while it is read share one read.
    if (this.#known?.mark !== mark) this.#known = { mark, built: readBuilt(this.#directory) };
    const { built } = this.#known;
    built.catch(() => {
      if (this.#known?.built === built) this.#known = undefined;
    });
    return built;
  }
}

async function readBuilt(directory: string): Promise<BuiltFiles> {
  // Only plain files: no symbolic links.
  const found = (await readdir(directory, { recursive: true, withFileTypes: true }))
    .filter((entry) => entry.isFile())
    .map((entry) => relative(directory, join(entry.parentPath, entry.name)).split(sep).join('/'));
  const names = new Set(found);
  const files = new Map<string, BuiltFile>();
  for (const name of found) {
    const type = TYPES[extname(name)];
    if (type === undefined) continue;
    const path = join(directory, name);
    const paths = new Map<FileEncoding, string>();
    for (const [ending, encoding] of ENDINGS)
      if (names.has(name + ending)) paths.set(encoding, path + ending);
    const digest = createHash('sha256')
      .update(await readFile(path))
      .digest('hex');
    files.set(name, { type, digest, isHashed: name.startsWith('assets/'), paths });
  }
  return { files, index: await readFile(join(directory, INDEX), 'utf8') };
}
