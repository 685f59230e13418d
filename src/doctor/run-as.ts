/** The system user that sources run as: whether it can, and whether it is kept from what belongs to the service. */
import { existsSync } from 'node:fs';
import { readdir } from 'node:fs/promises';
import { dirname, join, resolve } from 'node:path';
import { mayAccess, requireRunAs } from '../sources/process/run-as.ts';
import { keyFile } from '../teams/encryption-key.ts';
import { type Check, error, ofSettings, ok } from './check.ts';

export const runAs: Check = ofSettings('files', 'run-as', async (settings) => {
  const { runAs: user, dataDirectory, workflowsDirectory } = settings;
  if (user === undefined) return ok("Sources run as the service's own user");
  try {
    await requireRunAs(user, workflowsDirectory);
  } catch (cause) {
    return error({
      what: (cause as Error).message,
      why: 'The service exits at once if this user starts it',
      fix: 'Correct FLOWHOOK_RUN_AS or the permissions, or run doctor as root',
    });
  }
  const secrets = join(dirname(resolve(workflowsDirectory)), 'secrets');
  const files = await readdir(secrets).catch(() => []);
  const places = [dataDirectory, keyFile(settings), ...files.map((name) => join(secrets, name))].filter(
    (path) => existsSync(path),
  );
  const readable: string[] = [];
  for (const path of places) if (await mayAccess(user, 'r', path)) readable.push(path);
  if (readable.length === 0)
    return ok(`Sources run as ${user.user}, who cannot read what belongs to the service`);
  return error({
    what: `Sources run as ${user.user}, who can read ${readable.join(', ')}`,
    why: 'A program of a workflow can read the database, the encryption key or the secrets of all teams',
    fix: `chmod go-rwx ${readable.join(' ')}`,
  });
});
