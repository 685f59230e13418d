/** Files as they were built: which there are, in which encodings, and what they are called by. */
import { createHash } from 'node:crypto';
import { readdir, readFile, stat } from 'node:fs/promises';
import { extname, join, relative, sep } from 'node:path';

export const INDEX = 'index.html';

const MAX_TRIES = 3;

export type FileEncoding = 'br' | 'gzip' | 'identity';

export interface BuiltFile {
  /** `Content-Type`. */
  type: string;
  /** Of the bytes before they were compressed, in hex. */
  digest: string;
  /** Whether its name changes with what is in it. */
  isHashed: boolean;
  /** Where it lies, by encoding, the best first. */
  paths: ReadonlyMap<FileEncoding, string>;
}

export interface BuiltFiles {
  /** By its path below the directory, with slashes. What is not here is not sent. */
  files: ReadonlyMap<string, BuiltFile>;
  /** The page as text. */
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

/** Looks through a directory once more when its page is another one than before. */
export class Built {
  readonly #directory: string;
  #known: { mark: string; built: Promise<BuiltFiles> } | undefined;

  constructor(directory: string) {
    this.#directory = directory;
  }

  /** What there is, or nothing when it was not built. */
  async look(): Promise<BuiltFiles | undefined> {
    for (let tries = 1; ; tries++) {
      try {
        return await this.#look();
      } catch (error) {
        // Another build took the place of this one while it was looked through.
        if (tries === MAX_TRIES) throw error;
      }
    }
  }

  async #look(): Promise<BuiltFiles | undefined> {
    const found = await stat(join(this.#directory, INDEX)).catch(() => undefined);
    if (found === undefined) return undefined;
    const mark = `${found.ino} ${found.mtimeMs} ${found.size}`;
    // Whoever comes while it is looked through waits for the same.
    if (this.#known?.mark !== mark) this.#known = { mark, built: readBuilt(this.#directory) };
    const { built } = this.#known;
    built.catch(() => {
      if (this.#known?.built === built) this.#known = undefined;
    });
    return built;
  }
}

async function readBuilt(directory: string): Promise<BuiltFiles> {
  // What is no plain file, links among others, is left out.
  const found = (await readdir(directory, { recursive: true, withFileTypes: true }))
    .filter((entry) => entry.isFile())
    .map((entry) => relative(directory, join(entry.parentPath, entry.name)).split(sep).join('/'));
  const names = new Set(found);
  const files = new Map<string, BuiltFile>();
  for (const name of found) {
    const type = TYPES[extname(name)];
    if (type === undefined) continue;
    const path = join(directory, name);
    const paths = new Map<FileEncoding, string>([['identity', path]]);
    for (const [ending, encoding] of ENDINGS)
      if (names.has(name + ending)) paths.set(encoding, path + ending);
    const digest = createHash('sha256')
      .update(await readFile(path))
      .digest('hex');
    files.set(name, { type, digest, isHashed: name.startsWith('assets/'), paths });
  }
  return { files, index: await readFile(join(directory, INDEX), 'utf8') };
}
