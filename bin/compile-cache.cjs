// The directory of Node's compile cache. Anyone who can write to it can run code as its users, so it is never Node's
// default, a predictable name in the shared temporary directory.
const { lstatSync, mkdirSync, realpathSync } = require('node:fs');
const { enableCompileCache } = require('node:module');
const { homedir } = require('node:os');
const { dirname, isAbsolute, join } = require('node:path');

const WRITABLE_BY_OTHERS = 0o022;
const OPEN_TO_OTHERS = 0o077;
const STICKY = 0o1000;

/**
 * Turns on the compile cache for this process, its threads, and those of its children that are programs of ours. The
 * cache is in `$XDG_CACHE_HOME/flowhook` or `~/.cache/flowhook`, and stays off if other users can write there. If the
 * operator sets `NODE_COMPILE_CACHE`, Node has turned the cache on before this code runs.
 */
exports.openCompileCache = () => {
  if (process.env.NODE_COMPILE_CACHE) return;
  const directory = ownCacheDirectory();
  if (directory === undefined) return;
  const { directory: used } = enableCompileCache(directory);
  // With this variable, threads start in a third of the time. Child processes do not inherit it, because they get an
  // environment of their own.
  if (used !== undefined) process.env.NODE_COMPILE_CACHE = directory;
};

/** @returns {string | undefined} the real path of an existing directory that only this user can access */
function ownCacheDirectory() {
  try {
    const { XDG_CACHE_HOME: named = '' } = process.env;
    const caches = isAbsolute(named) ? named : join(homedir(), '.cache');
    if (!isAbsolute(caches)) return undefined;
    // With `sudo`, the home directory may belong to another user, so it is not used.
    if (!isOnlyOurs(dirname(caches))) return undefined;
    makeDirectory(caches);
    if (!isOnlyOurs(caches)) return undefined;
    makeDirectory(join(caches, 'flowhook'));
    const own = realpathSync(join(caches, 'flowhook'));
    const { uid, mode } = lstatSync(own);
    const isPrivate = uid === process.getuid?.() && (mode & OPEN_TO_OTHERS) === 0;
    return isPrivate && isOnlyOurs(own) ? own : undefined;
  } catch {
    // No home directory, or a read-only file system: everything works without a cache.
    return undefined;
  }
}

/** Whether only this user and root can replace the directory and its parents. */
function isOnlyOurs(path) {
  for (let at = realpathSync(path); ; at = dirname(at)) {
    const { uid, mode } = lstatSync(at);
    if (uid !== 0 && uid !== process.getuid?.()) return false;
    // In a sticky directory other users can add files, but not replace ours.
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
