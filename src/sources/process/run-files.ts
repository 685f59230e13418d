/** The files in the TMPDIR of a command: its configuration, and its state, which it may change. */
import { constants } from 'node:fs';
import { open, stat, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';

const MAX_STATE_BYTES = 1 << 20;

/** Absolute paths. `config` is undefined when the definition has none. */
export interface RunFiles {
  state: string;
  config: string | undefined;
}

/** Writes both files, readable only by this user: the configuration may hold secrets. */
export async function writeRunFiles(
  directory: string,
  { state, config }: { state: string; config: string | undefined },
): Promise<RunFiles> {
  const files = {
    state: join(directory, 'state.json'),
    config: config === undefined ? undefined : join(directory, 'config.json'),
  };
  await writeFile(files.state, state, { mode: 0o600 });
  if (files.config !== undefined) await writeFile(files.config, config as string, { mode: 0o600 });
  return files;
}

/** Replaces `${state}` and `${config}` by the paths. */
export function withFiles(command: readonly string[], files: RunFiles): string[] {
  return command.map((argument) =>
    argument.replace(/\$\{(state|config)\}/g, (reference, name: keyof RunFiles) => files[name] ?? reference),
  );
}

/** The variables that name the files, for programs that do not take them as arguments. */
export function filesEnvironment(files: RunFiles): Record<string, string> {
  return {
    FLOWHOOK_STATE: files.state,
    ...(files.config === undefined ? {} : { FLOWHOOK_CONFIG: files.config }),
  };
}

/**
 * Reads the state that a program has left. `state` is undefined when it is unchanged or the file is gone; `mistake` says
 * why it cannot be kept.
 */
export async function readStateLeft(
  file: string,
  before: string,
): Promise<{ state: unknown } | { mistake: string }> {
  const text = await readSmallFile(file);
  if (text === undefined || text === before) return { state: undefined };
  if (text === 'unusable') {
    return { mistake: 'The state that it left in FLOWHOOK_STATE is not a file of at most 1 MiB' };
  }
  try {
    const state: unknown = JSON.parse(text);
    return { state: JSON.stringify(state) === before ? undefined : state };
  } catch (error) {
    return { mistake: `The state that it left in FLOWHOOK_STATE is not JSON: ${(error as Error).message}` };
  }
}

/** Neither follows links nor blocks: a program may have put a pipe or a device in place of the file. */
async function readSmallFile(path: string): Promise<string | undefined> {
  let file: Awaited<ReturnType<typeof open>>;
  try {
    file = await open(path, constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK);
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'ENOENT' ? undefined : 'unusable';
  }
  try {
    const stats = await file.stat();
    if (!stats.isFile() || stats.size > MAX_STATE_BYTES) return 'unusable';
    // Where runs have a user of their own, the service reads this as root: only what that user could read itself.
    const { uid } = await stat(dirname(path));
    if (uid !== process.getuid?.() && stats.uid !== uid) return 'unusable';
    return await file.readFile('utf8');
  } catch {
    return 'unusable';
  } finally {
    await file.close();
  }
}
