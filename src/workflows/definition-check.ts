/** Checks a definition, as far as its text can make that slow: from parsing it to the first time of its schedule. */
import { firstRunAt } from '../model/schedule.ts';
import type { Definition } from '../model/workflow.ts';
import { type ApiSecret, apiMistakes } from './api-secrets.ts';
import { aboveCeilings, type Ceilings } from './ceilings.ts';
import { type Parsed, parseDefinition, parseYamlDefinition } from './definition.ts';

/** A definition to be checked. `file` is its path in the workflows directory. */
export type ToCheck =
  /** A file of the operator. */
  | { yaml: string; file: string }
  /** Made over the API; `nowMs` is the time in epoch milliseconds after which the schedule counts. */
  | {
      json: string;
      file: string;
      ceilings: Ceilings;
      secrets: ReadonlyMap<string, Pick<ApiSecret, 'origins'>>;
      nowMs: number;
    };

/** `nextRunAt` is null without a schedule, and for files, whose caller knows the time. */
export type Checked =
  | { definition: Definition; nextRunAt: number | null }
  | Extract<Parsed, { mistakes: unknown }>;

export function checkDefinition(given: ToCheck): Checked {
  const { file } = given;
  if ('yaml' in given) {
    const parsed = parseYamlDefinition(given.yaml, { file });
    return 'definition' in parsed ? { ...parsed, nextRunAt: null } : parsed;
  }
  // There are no lines to name: the caller sent JSON of any layout.
  const parsed = parseDefinition(JSON.parse(given.json), { file, lineOf: () => null });
  if ('mistakes' in parsed) return parsed;
  const { definition } = parsed;
  const sentences = [
    ...aboveCeilings(definition, given.ceilings),
    ...apiMistakes(definition.source, given.secrets),
  ];
  if (sentences.length > 0) {
    return { mistakes: sentences.map((message) => ({ file, line: null, message })), untold: 0 };
  }
  return { definition, nextRunAt: firstRunAt(definition, given.nowMs) };
}
