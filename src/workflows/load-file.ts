/** Loads one workflow file, wherever it lies: to check it or to try it before it is applied. */
import { readFile, stat } from 'node:fs/promises';
import { basename, dirname, extname, join, resolve } from 'node:path';
import type { Definition } from '../model/workflow.ts';
import type { Logger } from '../observe/log.ts';
import type { Mistake } from './check.ts';
import { parseYamlDefinition } from './definition.ts';
import { parseModule } from './load.ts';
import { describeModules } from './sources/describe.ts';

/** A workflow as its file defines it. */
export interface LoadedFile {
  /** The folder that holds the team's folder: what the definition's own paths begin from. */
  directory: string;
  /** The name of the folder: the team's slug, where it is one. */
  team: string;
  id: string;
  definition: Definition;
}

/** @returns the workflow, or all mistakes of its file */
export async function loadWorkflowFile(
  path: string,
  options: { log: Logger; signal?: AbortSignal },
): Promise<LoadedFile | { mistakes: Mistake[] }> {
  const full = resolve(path);
  const directory = dirname(dirname(full));
  const team = basename(dirname(full));
  const id = basename(full, extname(full)).normalize('NFC');
  const file = `${team}/${basename(full)}`;
  const wrong = (message: string) => ({ mistakes: [{ file, line: null, message }] });
  if (!['.yaml', '.yml', '.mts'].includes(extname(full))) {
    return wrong('A workflow file ends in .yaml, .yml or .mts');
  }
  const stats = await stat(full).catch(() => undefined);
  if (stats === undefined) return wrong('There is no such file');
  if (!stats.isFile()) return wrong('This is not a file');
  let text: string;
  try {
    text = await readFile(full, 'utf8');
  } catch (error) {
    return wrong(`This file cannot be read: ${(error as Error).message}`);
  }
  let parsed: ReturnType<typeof parseYamlDefinition>;
  if (extname(full) === '.mts') {
    const described = await describeModules([join(directory, file)], { directory, ...options });
    parsed = parseModule({ file, text }, described.get(join(directory, file)));
  } else {
    parsed = parseYamlDefinition(text, { file });
  }
  return 'mistakes' in parsed ? parsed : { directory, team, id, definition: parsed.definition };
}
