/** Checks of files: who can access data and secrets, and whether workflow files are valid and applied. */
import { constants, existsSync } from 'node:fs';
import { access, readdir, stat } from 'node:fs/promises';
import { dirname, join, resolve } from 'node:path';
import { storedWorkflows } from '../definitions/apply.ts';
import { isBroken } from '../definitions/files.ts';
import { loadWorkflows } from '../definitions/load.ts';
import { readSecretsFile } from '../definitions/secrets.ts';
import { mistakeLine } from '../definitions/section.ts';
import { silentLogger } from '../observe/log.ts';
import { mayAccess, requireRunAs } from '../sources/process/environment.ts';
import { countWords, listed } from '../std/amounts.ts';
import { keyFile } from '../teams/encryption-key.ts';
import { type Check, error, ofSettings, ok, type Result, warning } from './check.ts';
import { existing } from './machine.ts';

const OPEN_TO_OTHERS = 0o077;
/** Docker and Kubernetes mount secrets in these directories. The secrets are readable only within the container. */
const CONTAINER_SECRETS = ['/run/secrets/', '/var/run/secrets/'];
const ROOT = 0;

export const dataDirectory: Check = ofSettings('files', 'data-directory', async ({ dataDirectory: path }) => {
  const found = await look(path);
  if (found === undefined) {
    return (
      (await cannotCreate(path, 'FLOWHOOK_DATA')) ??
      ok(`${path} does not exist yet: the first start creates it`)
    );
  }
  if (found.failed !== undefined) return unreadable(path, found.failed);
  const { mode, uid } = found;
  try {
    await access(path, constants.R_OK | constants.W_OK | constants.X_OK);
  } catch {
    return error({
      what: `This user cannot read and write ${path}`,
      why: 'The service exits at startup if this user runs it',
      fix: `chown the directory to the service user, and chmod 700 ${path}`,
    });
  }
  const own = process.getuid?.() ?? uid;
  if (uid !== own && own !== ROOT) {
    return warning({
      what: `${path} belongs to user ${uid}, but this command runs as user ${own}`,
      why: "The owner can remove the directory, and the two users may be unable to read each other's files",
      fix: 'Run doctor as the service user, or chown the directory to the service user',
    });
  }
  const strangers = await filesOfOthers(path, uid);
  if (strangers.length > 0) {
    return warning({
      what: `Files in ${path} belong to another user than the directory: ${strangers.join(', ')}`,
      why: 'A command probably ran as another user, perhaps with sudo. The service may be unable to write these files',
      fix: `chown them to the owner of the directory (${uid}), and run commands as that user`,
    });
  }
  if ((mode & OPEN_TO_OTHERS) === 0) return ok(`Only its owner can access ${path}`);
  return warning({
    what: `Other users on this machine can access ${path} (mode ${shown(mode)})`,
    why: 'The directory contains the database, with all records and key hashes, and the encryption key',
    fix: `chmod 700 ${path}`,
  });
});

/**
 * Returns the problem with a directory that the service will have to create.
 *
 * @param setting the variable that names the directory
 */
export async function cannotCreate(path: string, setting: string): Promise<Result | undefined> {
  const parent = existing(path);
  try {
    if (!(await stat(parent)).isDirectory()) throw new Error('not a directory');
    await access(parent, constants.W_OK | constants.X_OK);
    return undefined;
  } catch (cause) {
    return error({
      what: `${path} does not exist, and this user cannot create it in ${parent}: ${(cause as Error).message}`,
      why: 'A service that runs as this user cannot create it either',
      fix: `Create it for the service user (mkdir -m 700 -p ${path}, then chown), or set ${setting} to another directory`,
    });
  }
}

async function filesOfOthers(directory: string, uid: number): Promise<string[]> {
  const found: string[] = [];
  for (const name of (await readdir(directory)).sort()) {
    const entry = await look(join(directory, name));
    if (entry !== undefined && entry.failed === undefined && entry.uid !== uid) found.push(name);
  }
  return found.slice(0, 5);
}

export const secretFiles: Check = ofSettings('files', 'secret-files', async (settings) => {
  const ofTeams = (await secretsIn(settings)).filter((path) => path.endsWith('.yaml'));
  const places = [
    ...(settings.encryptionKey === undefined ? [keyFile(settings)] : []),
    ...ofTeams,
    // The name of a team's secret may also end in _FILE. The value of such a variable is not a path, and must not be
    // shown.
    ...[...settings.environment]
      .filter(([name, value]) => /^FLOWHOOK_(?!SECRET__).+_FILE$/.test(name) && value !== '')
      .map(([, path]) => resolve(path)),
  ];
  let count = 0;
  const open: { path: string; mode: number }[] = [];
  for (const path of places) {
    const found = await look(path);
    if (found === undefined) continue;
    if (found.failed !== undefined) return unreadable(path, found.failed);
    count += 1;
    const isMounted = CONTAINER_SECRETS.some((folder) => path.startsWith(folder));
    if (!isMounted && (found.mode & OPEN_TO_OTHERS) !== 0) open.push({ path, mode: found.mode });
  }
  if (open.length > 0) {
    return warning({
      what: `Other users on this machine can access ${open.map(({ path, mode }) => `${path} (mode ${shown(mode)})`).join(', ')}`,
      why: 'Anyone who reads a secret can use it without being noticed',
      fix: `chmod 600 ${open.map(({ path }) => path).join(' ')}. Rotate the secrets if someone may have read them already`,
    });
  }
  for (const path of ofTeams) {
    try {
      await readSecretsFile(path);
    } catch (cause) {
      return error({
        what: (cause as Error).message,
        why: 'Runs that use a secret of this team fail',
        fix: 'Correct the file. It must map names to strings',
      });
    }
  }
  return ok(
    count === 0
      ? 'There are no secret files'
      : `${countWords(count, 'secret file')}, accessible only to the owner`,
  );
});

/** Returns the files in the directory with the secrets of teams. */
async function secretsIn({ workflowsDirectory }: { workflowsDirectory: string }): Promise<string[]> {
  const folder = join(dirname(resolve(workflowsDirectory)), 'secrets');
  return (await readdir(folder).catch(() => [])).map((name) => join(folder, name));
}

type Looked = { failed: string } | { failed: undefined; mode: number; uid: number };

/** Returns the mode and the owner of a file; undefined if the file does not exist. */
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
    why: 'A service that runs as this user cannot access it either',
    fix: 'Give this user read access, or run doctor as the service user',
  });
}

function shown(mode: number): string {
  return `0${mode.toString(8)}`;
}

export const runAs: Check = ofSettings('files', 'run-as', async (settings) => {
  const { runAs: user, dataDirectory, workflowsDirectory } = settings;
  if (user === undefined) return ok("Sources run as the service's own user");
  try {
    await requireRunAs(user, workflowsDirectory);
  } catch (cause) {
    return error({
      what: (cause as Error).message,
      why: 'The service exits at startup if this user runs it',
      fix: 'Correct FLOWHOOK_RUN_AS or the permissions, or run doctor as root',
    });
  }
  const secrets = await secretsIn(settings);
  const places = [dataDirectory, keyFile(settings), ...secrets].filter((path) => existsSync(path));
  const readable: string[] = [];
  for (const path of places) if (await mayAccess(user, 'r', path)) readable.push(path);
  if (readable.length === 0)
    return ok(`Sources run as ${user.user}, who cannot read data or secrets of the service`);
  return error({
    what: `Sources run as ${user.user}, who can read ${readable.join(', ')}`,
    why: 'A program of a workflow can read the database, the encryption key or the secrets of all teams',
    fix: `chmod go-rwx ${readable.join(' ')}`,
  });
});

/** The timeout is longer than the default, because changed modules are imported to read their settings. */
const LIMIT_MS = 30_000;

export const workflowFiles: Check = {
  ...ofSettings('files', 'workflow-files', async (settings, subject, signal) => {
    const { workflowsDirectory: directory, workflowsNamed } = settings;
    if (!existsSync(directory)) {
      if (!workflowsNamed) return ok(`There are no workflow files (${directory})`);
      return error({
        what: `The workflows directory ${directory} does not exist`,
        why: 'The service does not start without a directory that was set explicitly',
        fix: 'Create the directory, or set FLOWHOOK_WORKFLOWS to another directory',
      });
    }
    const { store } = subject.database;
    const stored = store === undefined ? undefined : await storedWorkflows(store);
    const { found, mistakes, broken } = await loadWorkflows({
      directory,
      runAs: settings.runAs,
      known: (team, id) => stored?.get(`${team}/${id}`)?.hash,
      log: silentLogger,
      signal,
    });
    if (mistakes.length > 0) {
      return error({
        what: `Invalid workflow files: ${listed(mistakes.map(mistakeLine))}`,
        why: 'These workflows keep their last valid definition, or do not exist',
        fix: 'Correct the files, check them with `flowhook workflows validate`, and run `flowhook apply`',
      });
    }
    if (stored === undefined) return ok(`${countWords(found.length, 'workflow file')}, all valid`);
    const present = new Set(found.map(({ team, id }) => `${team}/${id}`));
    const changed = found.filter(({ definition }) => definition !== null);
    const missing = [...stored].flatMap(([name, workflow]) =>
      present.has(name) || isBroken(broken, workflow) ? [] : [name],
    );
    if (changed.length === 0 && missing.length === 0) {
      return ok(`${countWords(found.length, 'workflow file')}, all applied`);
    }
    const words = [
      ...(changed.length === 0
        ? []
        : [`changed or new: ${listed(changed.map(({ team, id }) => `${team}/${id}`))}`]),
      ...(missing.length === 0 ? [] : [`applied, but without a file: ${listed(missing)}`]),
    ];
    return warning({
      what: `The workflow files differ from what was applied; ${words.join('; ')}`,
      why: 'Runs use the applied definitions, not the files',
      fix: 'Apply the files with `flowhook apply`. To archive workflows without a file, use `flowhook apply --prune`',
    });
  }),
  limitMs: LIMIT_MS,
};
