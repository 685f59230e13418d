/** Finds files that look like definitions, but lie or are called so that they define nothing. */
import { open, readdir, stat } from 'node:fs/promises';
import { extname, join } from 'node:path';
import { nearest } from '../std/nearest.ts';
import type { Mistake } from './check.ts';

/** The endings of workflow files. */
export const EXTENSIONS = ['.yaml', '.yml', '.mts'];
/** Other endings that somebody might give one. Not `.bak`, `.off` and the like: those are meant to be ignored. */
const LIKELY = ['', '.json', '.txt', '.ts', '.cts', '.mjs', '.js'];
/** Keys at the beginning of a line that other YAML seldom has: somebody may have misspelt `source`. */
const YAML_KEY = /^(?:source|schedule|guards|retries|overlap|fields)\s*:/m;
const TEXT_KEY = /^source\s*:/m;
const JSON_KEY = /^\s*\{[\s\S]*"source"\s*:\s*\{/;
const MODULE = /^export\s+(?:const\s+workflow\b|default\s+(?:async\s+)?function\s*\*)/m;
/** Folders below a team's folder, bounded against links and large trees. */
const MAX_DEPTH = 3;
const MAX_FILES = 1_000;
/** How much of a file is looked at. */
const HEAD_BYTES = 65_536;

export interface StrayFiles {
  mistakes: Mistake[];
  /** The workflows that they probably define; with a null team, one of any team. */
  meant: { team: string | null; id: string }[];
}

/** Hidden entries and `node_modules` are left out. @param directory the workflows directory, which must exist */
export async function findStrayFiles(directory: string): Promise<StrayFiles> {
  const found: StrayFiles = { mistakes: [], meant: [] };
  const top = await entriesOf(directory);
  const teams = top.filter(({ isFolder }) => isFolder).map(({ name }) => name);
  const inTeams: string[] = [];
  for (const team of teams) await gather(directory, team, { depth: 1, files: inTeams });
  const outside = top.filter(({ isFolder }) => !isFolder).map(({ name }) => name);
  for (const file of [...outside, ...inTeams]) {
    const name = file.split('/').at(-1) ?? '';
    const isInPlace = file.split('/').length === 2 && EXTENSIONS.includes(extname(name));
    if (isInPlace || !mayDefine(name) || !(await looksLikeDefinition(join(directory, file)))) continue;
    found.mistakes.push({ file, line: null, message: strayMessage(file, teams) });
    const [team = '', ...rest] = file.split('/');
    found.meant.push({ team: rest.length === 0 ? null : team, id: idOf(name) });
  }
  return found;
}

/**
 * What is wrong with where such a file lies or how it is called, and where it belongs.
 *
 * @param file its path inside the workflows directory, with forward slashes
 * @param teams the folders that there are
 */
export function strayMessage(file: string, teams: readonly string[]): string {
  const parts = file.split('/');
  const name = parts.at(-1) ?? '';
  const right = `${idOf(name)}${rightExtension(name)}`;
  if (parts.length === 1) {
    const team = teams.length === 0 ? 'default' : teams.length === 1 ? teams[0] : '<team>';
    return `This file is in no team's folder, so it defines nothing. Move it to ${team}/${right}`;
  }
  if (parts.length > 2) {
    return (
      `This file is in a folder of a team's folder, so it defines nothing. Move it to ${parts[0]}/${right}; if it is ` +
      'not a workflow, let the name of its folder begin with a dot'
    );
  }
  return `A workflow file ends in .yaml, .yml or .mts, so this one defines nothing. Rename it to ${parts[0]}/${right}`;
}

async function gather(
  directory: string,
  path: string,
  { depth, files }: { depth: number; files: string[] },
): Promise<void> {
  for (const { name, isFolder } of await entriesOf(join(directory, path))) {
    if (files.length >= MAX_FILES) return;
    const inside = `${path}/${name}`;
    if (!isFolder) files.push(inside);
    else if (depth < MAX_DEPTH) await gather(directory, inside, { depth: depth + 1, files });
  }
}

/** A folder that cannot be read is told of elsewhere. */
async function entriesOf(directory: string): Promise<{ name: string; isFolder: boolean }[]> {
  const entries = await readdir(directory, { withFileTypes: true }).catch(() => []);
  const seen = entries.filter(({ name }) => !name.startsWith('.') && name !== 'node_modules');
  const found = seen.map(async (entry) => {
    const { name } = entry;
    if (!entry.isSymbolicLink()) return { name, isFolder: entry.isDirectory() };
    const stats = await stat(join(directory, name)).catch(() => undefined);
    return { name, isFolder: stats?.isDirectory() ?? false };
  });
  return (await Promise.all(found)).sort((a, b) => (a.name < b.name ? -1 : 1));
}

function mayDefine(name: string): boolean {
  const extension = extname(name).toLowerCase();
  return LIKELY.includes(extension) || rightExtensionOf(extension) !== undefined;
}

function rightExtensionOf(extension: string): string | undefined {
  return EXTENSIONS.includes(extension) ? extension : nearest(extension, EXTENSIONS);
}

function rightExtension(name: string): string {
  const extension = extname(name).toLowerCase();
  if (['.ts', '.cts', '.mjs', '.js'].includes(extension)) return '.mts';
  return rightExtensionOf(extension) ?? '.yaml';
}

/** `people` of `people.yaml`, `people.yaml.txt` and `people.ymal`. */
function idOf(name: string): string {
  const bare = name.slice(0, name.length - extname(name).length);
  const again = EXTENSIONS.includes(extname(bare)) ? bare.slice(0, -extname(bare).length) : bare;
  return again.normalize('NFC');
}

async function looksLikeDefinition(path: string): Promise<boolean> {
  // Opening a pipe would wait for somebody to write.
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
