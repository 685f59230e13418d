/** Finds the workflow files of a directory (`<team>/<id>.yaml`, `.yml` or `.mts`), and files that are misplaced or misnamed. */
import { createHash } from 'node:crypto';
import { open, readdir, readFile, stat } from 'node:fs/promises';
import { extname, join } from 'node:path';
import { Problem } from '../model/error.ts';
import { isTeamSlug } from '../model/team.ts';
import { isWorkflowId } from '../model/workflow.ts';
import { nearest } from '../std/nearest.ts';
import type { Mistake } from './section.ts';

/** This number is part of every hash. Increment it when a new version of Flowhook must parse all definitions again. */
const DEFINITION_FORMAT = 1;
const MAX_FILE_BYTES = 1 << 20;

export interface WorkflowFile {
  team: string;
  id: string;
  /** The path of the file within the workflows directory, with forward slashes: `team/id.yaml`. */
  file: string;
  text: string;
  /**
   * The SHA-256 hash of the path and the content, in hex. It does not cover files that the workflow imports or runs.
   */
  hash: string;
}

interface WorkflowFiles {
  files: WorkflowFile[];
  mistakes: Mistake[];
  broken: Broken[];
}

/**
 * A workflow whose file exists but cannot be used. The workflow does not count as missing. If `id` is null, this
 * applies to all workflows of the team; if `team` is null, it applies to all teams.
 */
export interface Broken {
  team: string | null;
  id: string | null;
}

/** Whether a workflow has a file that cannot be used. */
export function isBroken(broken: readonly Broken[], workflow: { team: string; id: string }): boolean {
  return broken.some(
    ({ team, id }) => (team === null || team === workflow.team) && (id === null || id === workflow.id),
  );
}

/**
 * Reads the top level of each team's folder. Hidden entries, other kinds of files and nested folders are ignored,
 * because they may contain scripts and shared code. Symbolic links are followed.
 *
 * @throws Problem if the directory does not exist
 */
export async function findWorkflowFiles(directory: string): Promise<WorkflowFiles> {
  const found: WorkflowFiles = { files: [], mistakes: [], broken: [] };
  const entries = await visibleEntries(directory).catch((error) => refuse(directory, error));
  for (const { name, isFolder } of entries) if (isFolder) await addTeam(directory, name, found);
  return found;
}

/** Reads the file of one workflow. Returns undefined if this node has no readable file for the workflow. */
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

/**
 * Lists the entries of a directory by name, except for hidden entries and `node_modules`. Symbolic links are followed.
 */
async function visibleEntries(directory: string): Promise<{ name: string; isFolder: boolean }[]> {
  const entries = await readdir(directory, { withFileTypes: true });
  const seen = entries.filter(({ name }) => !name.startsWith('.') && name !== 'node_modules');
  const found = seen.map(async (entry) => {
    const { name } = entry;
    if (!entry.isSymbolicLink()) return { name, isFolder: entry.isDirectory() };
    const stats = await stat(join(directory, name)).catch(() => undefined);
    return { name, isFolder: stats?.isDirectory() ?? false };
  });
  return (await Promise.all(found)).sort((a, b) => (a.name < b.name ? -1 : 1));
}

function refuse(directory: string, cause: NodeJS.ErrnoException): never {
  const option = 'with --workflows or FLOWHOOK_WORKFLOWS';
  const reasons: Record<string, string> = {
    ENOENT: `does not exist. Create it, or set another directory ${option}`,
    ENOTDIR: `is a file, not a directory. Set the directory that contains it ${option}`,
  };
  const why = reasons[cause.code ?? ''] ?? `cannot be read: ${cause.message}`;
  throw new Problem('definition_invalid', { sentence: `The workflows directory ${directory} ${why}`, cause });
}

async function addTeam(directory: string, team: string, found: WorkflowFiles): Promise<void> {
  let names: string[];
  try {
    names = (await visibleEntries(join(directory, team))).map(({ name }) => name);
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
    names.filter((name) => EXTENSIONS.includes(extname(name))),
    // Names are normalized, because some file systems store an accented letter as two characters.
    (name) => name.slice(0, -extname(name).length).normalize('NFC'),
  );
  if (byId.size > 0 && !isTeamSlug(team)) {
    const message = `${JSON.stringify(team)} is not a valid team name. Rename the folder: 1 to 63 characters of a–z, 0–9 and -, starting with a letter or digit`;
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
      mistake: `${JSON.stringify(id)} is not a valid workflow id. Rename the file: 1 to 200 characters without control characters or backslashes`,
    };
  }
  try {
    const stats = await stat(join(directory, file));
    if (!stats.isFile()) return { mistake: 'This is not a regular file' };
    if (stats.size > MAX_FILE_BYTES)
      return { mistake: 'This file is larger than 1 MiB, the limit for a definition' };
    const text = await readFile(join(directory, file), 'utf8');
    const hash = createHash('sha256').update(`${DEFINITION_FORMAT}\n${file}\n${text}`).digest('hex');
    return { team, id, file, text, hash };
  } catch (error) {
    return { mistake: `This file cannot be read: ${(error as Error).message}` };
  }
}

/** The file name extensions of workflow files. */
export const EXTENSIONS = ['.yaml', '.yml', '.mts'];
/**
 * Wrong extensions that a workflow file may have. `.bak` and `.off` are not among them, because people use them for
 * files that should be ignored.
 */
const LIKELY = ['', '.json', '.txt'];
const SCRIPTS = ['.ts', '.cts', '.mjs', '.js'];
/**
 * Matches keys at the start of a line that are rare in other YAML. Looking only for `source` is not enough, because its
 * name may be misspelled.
 */
const YAML_KEY = /^(?:source|schedule|expect|guards|retries|overlap|fields)\s*:/m;
const TEXT_KEY = /^source\s*:/m;
const JSON_KEY = /^\s*\{[\s\S]*"source"\s*:\s*\{/;
const MODULE = /^export\s+(?:const\s+workflow\b|default\s+(?:async\s+)?function\s*\*)/m;
/** Limits for the search in the folders of teams, which may contain links and large directory trees. */
const MAX_DEPTH = 3;
const MAX_FILES = 1_000;
/** This many bytes at the start of a file are examined. */
const HEAD_BYTES = 65_536;

/**
 * Finds files that look like definitions, but are in the wrong place or have the wrong extension. Hidden entries and
 * `node_modules` are skipped.
 */
export async function findStrayFiles(directory: string): Promise<Pick<WorkflowFiles, 'mistakes' | 'broken'>> {
  const mistakes: Mistake[] = [];
  const broken: Broken[] = [];
  // Folders that cannot be read are skipped, because `findWorkflowFiles` reports them.
  const top = await visibleEntries(directory).catch(() => []);
  const teams = top.filter(({ isFolder }) => isFolder).map(({ name }) => name);
  const inTeams: string[] = [];
  for (const team of teams) await gather(directory, team, { depth: 1, files: inTeams });
  const outside = top.filter(({ isFolder }) => !isFolder).map(({ name }) => name);
  for (const file of [...outside, ...inTeams]) {
    const name = file.split('/').at(-1) ?? '';
    const isInPlace = file.split('/').length === 2 && EXTENSIONS.includes(extname(name));
    if (isInPlace || rightExtension(name) === undefined) continue;
    if (!(await looksLikeDefinition(join(directory, file)))) continue;
    mistakes.push({ file, line: null, message: strayMessage(file, teams) });
    const [team = '', ...rest] = file.split('/');
    broken.push({ team: rest.length === 0 ? null : team, id: idOf(name) });
  }
  return { mistakes, broken };
}

/**
 * Says why a file defines no workflow, and where the file belongs.
 *
 * @param file the path within the workflows directory, with forward slashes
 * @param teams the names of the existing team folders
 */
export function strayMessage(file: string, teams: readonly string[]): string {
  const parts = file.split('/');
  const name = parts.at(-1) ?? '';
  const right = `${idOf(name)}${rightExtension(name) ?? '.yaml'}`;
  if (parts.length === 1) {
    const team = teams.length === 0 ? 'default' : teams.length === 1 ? teams[0] : '<team>';
    return `This file is not in the folder of a team, so it is not used. Move it to ${team}/${right}`;
  }
  if (parts.length > 2) {
    return (
      `This file is in a subfolder of a team's folder, so it is not used. Move it to ${parts[0]}/${right}; if it is ` +
      'not a workflow, start the name of its folder with a dot'
    );
  }
  return `A workflow file ends in .yaml, .yml or .mts, so this file is not used. Rename it to ${parts[0]}/${right}`;
}

async function gather(
  directory: string,
  path: string,
  { depth, files }: { depth: number; files: string[] },
): Promise<void> {
  for (const { name, isFolder } of await visibleEntries(join(directory, path)).catch(() => [])) {
    if (files.length >= MAX_FILES) return;
    const inside = `${path}/${name}`;
    if (!isFolder) files.push(inside);
    else if (depth < MAX_DEPTH) await gather(directory, inside, { depth: depth + 1, files });
  }
}

/** The extension that a file should have; undefined if it is probably not a workflow file. */
function rightExtension(name: string): string | undefined {
  const extension = extname(name).toLowerCase();
  if (SCRIPTS.includes(extension)) return '.mts';
  if (EXTENSIONS.includes(extension)) return extension;
  return nearest(extension, EXTENSIONS) ?? (LIKELY.includes(extension) ? '.yaml' : undefined);
}

/** `people` of `people.yaml`, `people.yaml.txt` and `people.ymal`. */
function idOf(name: string): string {
  const bare = name.slice(0, name.length - extname(name).length);
  const again = EXTENSIONS.includes(extname(bare)) ? bare.slice(0, -extname(bare).length) : bare;
  return again.normalize('NFC');
}

async function looksLikeDefinition(path: string): Promise<boolean> {
  // Only regular files are opened, because opening a pipe would wait for a writer.
  if (!((await stat(path).catch(() => undefined))?.isFile() ?? false)) return false;
  const handle = await open(path).catch(() => undefined);
  if (handle === undefined) return false;
  try {
    const { bytesRead, buffer } = await handle.read({ buffer: Buffer.alloc(HEAD_BYTES), position: 0 });
    const text = buffer.toString('utf8', 0, bytesRead);
    const extension = extname(path).toLowerCase();
    if (/^\.[cm]?[jt]s$/.test(extension)) return MODULE.test(text);
    return (LIKELY.includes(extension) ? TEXT_KEY : YAML_KEY).test(text) || JSON_KEY.test(text);
  } catch {
    return false;
  } finally {
    await handle.close();
  }
}
