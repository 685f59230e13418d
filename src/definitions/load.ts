/** Loads workflow files: the changed files of a workflows directory, or a single file from anywhere. */
import { readFile, stat } from 'node:fs/promises';
import { basename, dirname, extname, join, resolve } from 'node:path';
import type { Definition } from '../model/workflow.ts';
import type { Logger } from '../observe/log.ts';
import type { RunAs } from '../sources/process/environment.ts';
import { type ModuleSettings, readModuleSettings } from '../sources/process/module.ts';
import { type Parsed, parseModuleDefinition, parseYamlDefinition } from './definition.ts';
import { type Broken, EXTENSIONS, findStrayFiles, findWorkflowFiles, type WorkflowFile } from './files.ts';
import type { Mistake } from './section.ts';

export interface FoundWorkflow {
  /** The slug of the team, which is the name of its folder. */
  team: string;
  id: string;
  /** The path of the file within the workflows directory, with forward slashes. */
  file: string;
  hash: string;
  /** The parsed definition; null if the hash of the file equals the known hash. */
  definition: Definition | null;
}

/** Parses a YAML definition. A running server parses in a thread, so that a large file does not block requests. */
export type ParseYaml = (text: string, options: { file: string }) => Parsed | Promise<Parsed>;

interface LoadedDirectory {
  found: FoundWorkflow[];
  mistakes: Mistake[];
  broken: Broken[];
}

/**
 * Loads `<team>/<id>.yaml`, `.yml` and `.mts`. Misplaced files that look like definitions are reported as mistakes.
 * Files whose hash is already known are not parsed. One child process reads the settings of all changed modules.
 *
 * @param input.known returns the stored hash of a workflow's definition
 * @throws Problem if the directory is missing
 */
export async function loadWorkflows(input: {
  directory: string;
  known(team: string, id: string): string | undefined;
  log: Logger;
  /** Modules are imported as this system user. If it is undefined, they are imported as the service's own user. */
  runAs: RunAs | undefined;
  /** Stops reading modules. */
  signal?: AbortSignal | undefined;
  parseYaml?: ParseYaml | undefined;
}): Promise<LoadedDirectory> {
  const directory = resolve(input.directory);
  const { files, mistakes, broken } = await findWorkflowFiles(directory);
  const strays = await findStrayFiles(directory);
  mistakes.push(...strays.mistakes);
  broken.push(...strays.broken);
  const changed = new Set(files.filter(({ team, id, hash }) => input.known(team, id) !== hash));
  const parse = await parserFor([...changed], { ...input, directory });
  const found: FoundWorkflow[] = [];
  for (const workflowFile of files) {
    const { team, id, file, hash } = workflowFile;
    if (!changed.has(workflowFile)) {
      found.push({ team, id, file, hash, definition: null });
      continue;
    }
    const parsed = await parse(workflowFile);
    if ('definition' in parsed) {
      found.push({ team, id, file, hash, definition: parsed.definition });
    } else {
      mistakes.push(...withOmitted(parsed, file));
      broken.push({ team, id });
    }
  }
  return { found, mistakes, broken };
}

export interface LoadedFile {
  /** The parent of the team's folder. Relative paths in the definition start from it. */
  directory: string;
  /** The name of the folder with the file. In a workflows directory, this name is the team's slug. */
  team: string;
  id: string;
  definition: Definition;
}

/**
 * Loads one workflow file, to check or try it before it is applied. The file may be outside the workflows directory.
 */
export async function loadWorkflowFile(
  path: string,
  options: { runAs: RunAs | undefined; log: Logger; signal?: AbortSignal },
): Promise<LoadedFile | { mistakes: Mistake[] }> {
  const full = resolve(path);
  const directory = dirname(dirname(full));
  const team = basename(dirname(full));
  const id = basename(full, extname(full)).normalize('NFC');
  const file = `${team}/${basename(full)}`;
  const wrong = (message: string) => ({ mistakes: [{ file, line: null, message }] });
  if (!EXTENSIONS.includes(extname(full))) {
    return wrong('A workflow file ends in .yaml, .yml or .mts');
  }
  const stats = await stat(full).catch(() => undefined);
  if (stats === undefined) return wrong('There is no such file');
  if (!stats.isFile()) return wrong('This is not a regular file');
  let text: string;
  try {
    text = await readFile(full, 'utf8');
  } catch (error) {
    return wrong(`This file cannot be read: ${(error as Error).message}`);
  }
  const parse = await parserFor([{ file }], { ...options, directory });
  const parsed = await parse({ file, text });
  return 'mistakes' in parsed
    ? { mistakes: withOmitted(parsed, file) }
    : { directory, team, id, definition: parsed.definition };
}

/** Returns the mistakes of a file. If some were omitted, one more entry has their number. */
function withOmitted({ mistakes, omitted }: Extract<Parsed, { mistakes: unknown }>, file: string): Mistake[] {
  if (omitted === 0) return mistakes;
  return [...mistakes, { file, line: null, message: `There are ${omitted} more mistakes` }];
}

type Text = Pick<WorkflowFile, 'file' | 'text'>;

/**
 * Returns a function that parses one of the files. First, one child process reads the settings of all modules among the
 * files.
 */
async function parserFor(
  files: readonly Pick<WorkflowFile, 'file'>[],
  input: {
    directory: string;
    runAs: RunAs | undefined;
    log: Logger;
    signal?: AbortSignal | undefined;
    parseYaml?: ParseYaml | undefined;
  },
): Promise<(text: Text) => Parsed | Promise<Parsed>> {
  const { directory, runAs, log, signal, parseYaml = parseYamlDefinition } = input;
  const modules = files.map(({ file }) => file).filter((file) => file.endsWith('.mts'));
  const settings = await readModuleSettings(
    modules.map((file) => join(directory, file)),
    { directory, runAs, log, ...(signal === undefined ? {} : { signal }) },
  );
  return ({ file, text }) =>
    file.endsWith('.mts')
      ? parseModule({ file, text }, settings.get(join(directory, file)))
      : parseYaml(text, { file });
}

function parseModule({ file, text }: Text, settings: ModuleSettings | undefined): Parsed {
  if (settings === undefined || 'error' in settings) {
    const message = settings?.error ?? 'The module could not be read';
    return { mistakes: [{ file, line: null, message }], omitted: 0 };
  }
  const at = text.search(/^export\s+const\s+workflow\b/m);
  const line = at === -1 ? null : text.slice(0, at).split('\n').length;
  return parseModuleDefinition(settings.settings, { file, line });
}
