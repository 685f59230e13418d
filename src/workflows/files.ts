/** Finds the workflow files of a directory: `<team>/<id>.yaml`, `.yml` or `.mts`. */
import { createHash } from 'node:crypto';
import { readdir, readFile, stat } from 'node:fs/promises';
import { extname, join } from 'node:path';
import { Problem } from '../model/error.ts';
import { isTeamSlug } from '../model/team.ts';
import { isWorkflowId } from '../model/workflow.ts';
import type { Mistake } from './check.ts';
import { EXTENSIONS } from './stray-files.ts';

/** Part of every hash. Incrementing it makes a new version of Flowhook parse all definitions again. */
const DEFINITION_FORMAT = 1;
const MAX_FILE_BYTES = 1 << 20;

export interface WorkflowFile {
  team: string;
  id: string;
  /** Path inside the directory, with forward slashes: `team/id.yaml`. */
  file: string;
  text: string;
  /** SHA-256 of the path and the content, in hex. Files that it imports or runs are not part of it. */
  hash: string;
}

interface WorkflowFiles {
  files: WorkflowFile[];
  mistakes: Mistake[];
  broken: Broken[];
}

/**
 * A file that exists but cannot be used: its workflow does not count as missing. With a null id, all workflows of a team;
 * with a null team, that workflow of any team.
 */
export interface Broken {
  team: string | null;
  id: string | null;
}

/** Whether a workflow has a file, though one that cannot be used. */
export function isBroken(broken: readonly Broken[], workflow: { team: string; id: string }): boolean {
  return broken.some(
    ({ team, id }) => (team === null || team === workflow.team) && (id === null || id === workflow.id),
  );
}

/**
 * Reads one level of each team's folder. Hidden entries, other kinds of files and nested folders are ignored: that is
 * where scripts and shared code live. Links are followed.
 *
 * @throws Problem when the directory does not exist
 */
export async function findWorkflowFiles(directory: string): Promise<WorkflowFiles> {
  const found: WorkflowFiles = { files: [], mistakes: [], broken: [] };
  for (const name of await entriesOf(directory)) {
    if (name === 'node_modules' || !(await isDirectory(join(directory, name)))) continue;
    await addTeam(directory, name, found);
  }
  return found;
}

/** The file that defines one workflow; undefined when this node has none that can be read. */
export async function findWorkflowFile(
  directory: string,
  { team, id }: { team: string; id: string },
): Promise<WorkflowFile | undefined> {
  for (const extension of EXTENSIONS) {
    const name = `${id}${extension}`;
    const read = await readDefinition({ directory, team, id, file: `${team}/${name}`, sameId: [name] });
    if ('hash' in read) return read;
  }
  return undefined;
}

async function entriesOf(directory: string): Promise<string[]> {
  try {
    return (await readdir(directory)).filter((name) => !name.startsWith('.')).sort();
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException;
    const what =
      code === 'ENOENT'
        ? `The workflows directory ${directory} does not exist. Create it, or name another one with --workflows or FLOWHOOK_WORKFLOWS`
        : code === 'ENOTDIR'
          ? `The workflows directory ${directory} is a file. Name its directory with --workflows or FLOWHOOK_WORKFLOWS`
          : `The workflows directory ${directory} cannot be read: ${message}`;
    throw new Problem('definition_invalid', { sentence: what, cause: error });
  }
}

async function isDirectory(path: string): Promise<boolean> {
  return (await stat(path).catch(() => undefined))?.isDirectory() ?? false;
}

async function addTeam(directory: string, team: string, found: WorkflowFiles): Promise<void> {
  let names: string[];
  try {
    names = (await readdir(join(directory, team))).sort();
  } catch (error) {
    found.mistakes.push({
      file: team,
      line: null,
      message: `This folder cannot be read: ${(error as Error).message}`,
    });
    found.broken.push({ team, id: null });
    return;
  }
  const byId = Map.groupBy(
    names.filter((name) => !name.startsWith('.') && EXTENSIONS.includes(extname(name))),
    // Some file systems store an accented letter as two characters.
    (name) => name.slice(0, -extname(name).length).normalize('NFC'),
  );
  if (byId.size > 0 && !isTeamSlug(team)) {
    const message = `${JSON.stringify(team)} cannot be a team: the folder's name must be 1 to 63 of a–z, 0–9 and -, and begin with a letter or digit`;
    found.mistakes.push({ file: team, line: null, message });
    return;
  }
  for (const [id, sameId] of byId) {
    const file = `${team}/${sameId[0]}`;
    const read = await readDefinition({ directory, team, id, file, sameId });
    if ('hash' in read) {
      found.files.push(read);
    } else {
      found.mistakes.push({ file, line: null, message: read.mistake });
      found.broken.push({ team, id });
    }
  }
}

async function readDefinition(input: {
  directory: string;
  team: string;
  id: string;
  file: string;
  sameId: readonly string[];
}): Promise<WorkflowFile | { mistake: string }> {
  const { directory, team, id, file, sameId } = input;
  if (sameId.length > 1) {
    return {
      mistake: `The workflow ${id} is defined more than once, in ${sameId.join(' and ')}. Keep one of them`,
    };
  }
  if (!isWorkflowId(id)) {
    return {
      mistake: `${JSON.stringify(id)} cannot be a workflow's id: 1 to 200 characters without control characters or backslashes`,
    };
  }
  try {
    const stats = await stat(join(directory, file));
    if (!stats.isFile()) return { mistake: 'This is not a file' };
    if (stats.size > MAX_FILE_BYTES)
      return { mistake: 'This file is larger than 1 MiB, too large for a definition' };
    const text = await readFile(join(directory, file), 'utf8');
    const hash = createHash('sha256').update(`${DEFINITION_FORMAT}\n${file}\n${text}`).digest('hex');
    return { team, id, file, text, hash };
  } catch (error) {
    return { mistake: `This file cannot be read: ${(error as Error).message}` };
  }
}
