/** The thread that checks definitions: one after the other, as `checks.ts` sends them. */
import { type MessagePort, parentPort } from 'node:worker_threads';
import { firstRunAt } from '../model/schedule.ts';
import type { Definition } from '../model/workflow.ts';
import { type ApiSecret, aboveCeilings, apiMistakes, type Ceilings } from './api-bounds.ts';
import { type Parsed, parseDefinition, parseYamlDefinition } from './definition.ts';

/** `ready` comes first, once; then an answer to each definition. */
export type FromCheck = { ready: true } | { checked: Checked } | { failed: string };

if (parentPort !== null) serve(parentPort);

function serve(port: MessagePort): void {
  const tell = (message: FromCheck) => port.postMessage(message);
  port.on('message', (given: ToCheck) => {
    try {
      tell({ checked: checkDefinition(given) });
    } catch (error) {
      tell({ failed: (error as Error).stack ?? String(error) });
    }
  });
  tell({ ready: true });
}

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

function checkDefinition(given: ToCheck): Checked {
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
