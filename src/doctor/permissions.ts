/** Permissions of the data directory, the encryption key, and files with secrets of teams and settings. */
import { constants } from 'node:fs';
import { access, readdir, stat } from 'node:fs/promises';
import { dirname, join, resolve } from 'node:path';
import { countWords } from '../std/amounts.ts';
import { isPostgres } from '../store/database-url.ts';
import { keyFile } from '../teams/encryption-key.ts';
import { readSecretsFile } from '../workflows/secrets-file.ts';
import { type Check, error, ofSettings, ok, type Result, skipped, warning } from './check.ts';

const OF_OTHERS = 0o077;
/** Docker and Kubernetes mount secrets there, readable only within the container. */
const OF_A_CONTAINER = ['/run/secrets/', '/var/run/secrets/'];
const ROOT = 0;

export const dataDirectory: Check = ofSettings('files', 'data-directory', async ({ dataDirectory: path }) => {
  const found = await look(path);
  if (found === undefined) return ok(`${path} does not exist yet: the first start creates it`);
  if (found.failed !== undefined) return unreadable(path, found.failed);
  const { mode, uid } = found;
  try {
    await access(path, constants.R_OK | constants.W_OK | constants.X_OK);
  } catch {
    return error({
      what: `This user cannot read and write ${path}`,
      why: 'The service exits at once if this user starts it',
      fix: `chown it to the service user, and chmod 700 ${path}`,
    });
  }
  const own = process.getuid?.() ?? uid;
  if (uid !== own && own !== ROOT) {
    return warning({
      what: `${path} belongs to user ${uid}, and this is user ${own}`,
      why: 'Its owner can take it away, and files written by one may be unreadable for the other',
      fix: 'Run doctor as the service user, or chown the directory to it',
    });
  }
  const strangers = await filesOfOthers(path, uid);
  if (strangers.length > 0) {
    return warning({
      what: `Files in ${path} belong to a different user than the directory: ${strangers.join(', ')}`,
      why: 'A command was run as another user, perhaps with sudo; the service may be unable to write them',
      fix: `chown them to the owner of the directory (${uid}), and run commands as that user`,
    });
  }
  if ((mode & OF_OTHERS) === 0) return ok(`Only its owner can access ${path}`);
  return warning({
    what: `Other users on this machine can access ${path} (mode ${shown(mode)})`,
    why: 'The database holds key hashes and all records; the encryption key is next to it',
    fix: `chmod 700 ${path}`,
  });
});

async function filesOfOthers(directory: string, uid: number): Promise<string[]> {
  const found: string[] = [];
  for (const name of (await readdir(directory)).sort()) {
    const entry = await look(join(directory, name));
    if (entry !== undefined && entry.failed === undefined && entry.uid !== uid) found.push(name);
  }
  return found.slice(0, 5);
}

export const encryptionKeyFile: Check = ofSettings('files', 'encryption-key-file', async (settings) => {
  if (settings.encryptionKey !== undefined) return ok('The encryption key comes from the settings');
  const path = keyFile(settings);
  const found = await look(path);
  if (found === undefined) {
    return isPostgres(settings.databaseUrl)
      ? skipped('Not checked', 'On PostgreSQL the encryption key comes from the settings')
      : ok(`${path} does not exist yet: the first start creates it`);
  }
  if (found.failed !== undefined) return unreadable(path, found.failed);
  return forOwnerAlone([{ path, mode: found.mode }]) ?? ok(`Only its owner can access ${path}`);
});

export const secretFiles: Check = ofSettings('files', 'secret-files', async (settings) => {
  const ofTeams = await teamFiles(settings.workflowsDirectory);
  const places = [
    ...ofTeams,
    // A secret of a team may have such a name too; its value is no path, and must not be repeated.
    ...[...settings.environment]
      .filter(([name, value]) => /^FLOWHOOK_(?!SECRET__).+_FILE$/.test(name) && value !== '')
      .map(([, path]) => resolve(path)),
  ];
  const open: { path: string; mode: number }[] = [];
  for (const path of places) {
    const found = await look(path);
    if (found === undefined) continue;
    if (found.failed !== undefined) return unreadable(path, found.failed);
    if (!OF_A_CONTAINER.some((folder) => path.startsWith(folder))) open.push({ path, mode: found.mode });
  }
  const exposed = forOwnerAlone(open);
  if (exposed !== undefined) return exposed;
  for (const path of ofTeams) {
    try {
      await readSecretsFile(path);
    } catch (cause) {
      return error({
        what: (cause as Error).message,
        why: 'Runs that use a secret of this team fail',
        fix: 'Correct the file: it must map names to strings',
      });
    }
  }
  return ok(
    places.length === 0
      ? 'There are no secret files'
      : `${countWords(places.length, 'secret file')}, accessible only to the owner`,
  );
});

async function teamFiles(workflowsDirectory: string): Promise<string[]> {
  const folder = join(dirname(resolve(workflowsDirectory)), 'secrets');
  const names = await readdir(folder).catch(() => []);
  return names.filter((name) => name.endsWith('.yaml')).map((name) => join(folder, name));
}

/** A warning if others may read any of the files; otherwise undefined. */
function forOwnerAlone(files: readonly { path: string; mode: number }[]): Result | undefined {
  const open = files.filter(({ mode }) => (mode & OF_OTHERS) !== 0);
  if (open.length === 0) return undefined;
  const paths = open.map(({ path }) => path);
  return warning({
    what: `Other users on this machine can access ${open.map(({ path, mode }) => `${path} (mode ${shown(mode)})`).join(', ')}`,
    why: 'Anyone who reads a secret can use it unnoticed',
    fix: `chmod 600 ${paths.join(' ')}. Rotate the secrets if someone may have read them already`,
  });
}

type Looked = { failed: string } | { failed: undefined; mode: number; uid: number };

/** Undefined when it does not exist. */
async function look(path: string): Promise<Looked | undefined> {
  try {
    const { mode, uid } = await stat(path);
    return { failed: undefined, mode: mode & 0o777, uid };
  } catch (cause) {
    const { code, message } = cause as NodeJS.ErrnoException;
    return code === 'ENOENT' ? undefined : { failed: message };
  }
}

function unreadable(path: string, failed: string): Result {
  return error({
    what: `${path} cannot be accessed: ${failed}`,
    why: 'The service cannot use it either if this user starts it',
    fix: 'Give this user read access, or run doctor as the service user',
  });
}

function shown(mode: number): string {
  return `0${mode.toString(8)}`;
}
