/** Loads a directory of workflow files: what is new is read, what is known is only recognised. */
import { join, resolve } from 'node:path';
import type { Definition } from '../model/workflow.ts';
import type { Logger } from '../observe/log.ts';
import type { Mistake } from './check.ts';
import { type Parsed, parseModuleDefinition, parseYamlDefinition } from './definition.ts';
import { findWorkflowFiles, type WorkflowFile } from './files.ts';
import { describeModules } from './sources/describe.ts';

export interface FoundWorkflow {
  /** The team's slug: the name of its folder. */
  team: string;
  id: string;
  /** Inside the directory, with forward slashes. */
  file: string;
  hash: string;
  /** null when the hash equals the known one. */
  definition: Definition | null;
}

export interface Loaded {
  found: FoundWorkflow[];
  mistakes: Mistake[];
  /** Workflows that are there but cannot be used; without an id, all of a team. */
  broken: { team: string; id: string | null }[];
}

/**
 * Reads `<team>/<id>.yaml`, `.yml` and `.mts`. The settings of modules are read by importing them in a child
 * process, all that changed in one. Throws a `Problem` when the directory is missing.
 *
 * @param input.known answers the stored hash of a workflow's definition
 */
export async function loadWorkflows(input: {
  directory: string;
  known(team: string, id: string): string | undefined;
  log: Logger;
  /** Gives up reading modules. */
  signal?: AbortSignal;
}): Promise<Loaded> {
  const directory = resolve(input.directory);
  const { files, mistakes, broken } = await findWorkflowFiles(directory);
  const changed = files.filter((file) => input.known(file.team, file.id) !== file.hash);
  const modules = changed.filter(({ file }) => file.endsWith('.mts'));
  const described = await describeModules(
    modules.map(({ file }) => join(directory, file)),
    { directory, log: input.log, ...(input.signal === undefined ? {} : { signal: input.signal }) },
  );
  const found: FoundWorkflow[] = [];
  for (const { text, ...file } of files) {
    if (!changed.some((other) => other.file === file.file)) {
      found.push({ ...file, definition: null });
      continue;
    }
    const parsed = file.file.endsWith('.mts')
      ? parseModule({ ...file, text }, described.get(join(directory, file.file)))
      : parseYamlDefinition(text, { file: file.file });
    if ('definition' in parsed) {
      found.push({ ...file, definition: parsed.definition });
    } else {
      mistakes.push(...parsed.mistakes);
      broken.push({ team: file.team, id: file.id });
    }
  }
  return { found, mistakes, broken };
}

/** The definition of a module whose settings were read. */
export function parseModule(
  { file, text }: Pick<WorkflowFile, 'file' | 'text'>,
  described: { settings: unknown } | { error: string } | undefined,
): Parsed {
  if (described === undefined || 'error' in described) {
    return { mistakes: [{ file, line: null, message: described?.error ?? 'The module could not be read' }] };
  }
  const at = text.search(/^export\s+const\s+workflow\b/m);
  const line = at === -1 ? null : text.slice(0, at).split('\n').length;
  return parseModuleDefinition(described.settings, { file, line });
}
