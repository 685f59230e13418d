// Where Node keeps what it has compiled of the service. Whoever can write there runs code as whoever reads it, so it is
// never Node's default, a predictable name in the shared temporary directory.
import { lstatSync, mkdirSync, realpathSync } from 'node:fs';
import { enableCompileCache } from 'node:module';
import { homedir } from 'node:os';
import { dirname, isAbsolute, join } from 'node:path';

const WRITABLE_BY_OTHERS = 0o022;
const OPEN_TO_OTHERS = 0o077;
const STICKY = 0o1000;

/**
 * Turns the compile cache on for this process, its threads, and our own programs among its children, in
 * `$XDG_CACHE_HOME/flowhook` or `~/.cache/flowhook`, if nobody else can write there; otherwise there is none. A
 * `NODE_COMPILE_CACHE` that the operator set is Node's own business: it is on before any of our code runs.
 */
export function openCompileCache() {
  if (process.env.NODE_COMPILE_CACHE) return;
  const directory = ownCacheDirectory();
  if (directory === undefined) return;
  const { directory: used } = enableCompileCache(directory);
  // Threads find it there, and start in a third of the time. Children get an environment of their own.
  if (used !== undefined) process.env.NODE_COMPILE_CACHE = directory;
}

/** @returns {string | undefined} the real path of an existing directory of this user, to which only it has access */
function ownCacheDirectory() {
  try {
    const { XDG_CACHE_HOME: named = '' } = process.env;
    const caches = isAbsolute(named) ? named : join(homedir(), '.cache');
    if (!isAbsolute(caches)) return undefined;
    // With `sudo` the home may be that of the caller: nothing is made or read there.
    if (!isOnlyOurs(dirname(caches))) return undefined;
    makeDirectory(caches);
    if (!isOnlyOurs(caches)) return undefined;
    makeDirectory(join(caches, 'flowhook'));
    const own = realpathSync(join(caches, 'flowhook'));
    const { uid, mode } = lstatSync(own);
    const isPrivate = uid === process.getuid?.() && (mode & OPEN_TO_OTHERS) === 0;
    return isPrivate && isOnlyOurs(own) ? own : undefined;
  } catch {
    // No home, a file in its place, or a file system that cannot be written to: everything works without a cache.
    return undefined;
  }
}

/** Whether nobody but this user and root can replace the directory, or any directory on the way to it. */
function isOnlyOurs(path) {
  for (let at = realpathSync(path); ; at = dirname(at)) {
    const { uid, mode } = lstatSync(at);
    if (uid !== 0 && uid !== process.getuid?.()) return false;
    // In a sticky directory others can add files, but not replace what is ours.
    if ((mode & WRITABLE_BY_OTHERS) !== 0 && (mode & STICKY) === 0) return false;
    if (at === dirname(at)) return true;
  }
}

function makeDirectory(path) {
  try {
    mkdirSync(path, { mode: 0o700 });
  } catch (error) {
    if (error.code !== 'EEXIST') throw error;
  }
}
