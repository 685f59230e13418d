/** A thread that checks definitions one at a time, in the order in which `checks.ts` sends them. */
import { type MessagePort, parentPort } from 'node:worker_threads';
import { firstRunAt } from '../model/schedule.ts';
import type { Definition } from '../model/workflow.ts';
import { type ApiSecret, aboveCeilings, apiMistakes, type Ceilings } from './api-bounds.ts';
import { type Parsed, parseDefinition, parseYamlDefinition } from './definition.ts';

/** The thread first sends `ready`, and then one message for each definition. */
export type FromCheck = { ready: true } | { checked: Checked } | { failed: string };

if (parentPort !== null) serve(parentPort);

function serve(port: MessagePort): void {
  const post = (message: FromCheck) => port.postMessage(message);
  port.on('message', (given: ToCheck) => {
    try {
      post({ checked: checkDefinition(given) });
    } catch (error) {
      post({ failed: (error as Error).stack ?? String(error) });
    }
  });
  post({ ready: true });
}

/** A definition to check. `file` is the path within the workflows directory. */
export type ToCheck =
  /** A file of the operator. */
  | { yaml: string; file: string }
  /** A definition made over the API. Its first run, `nextRunAt`, is computed from `nowMs` (epoch milliseconds). */
  | {
      json: string;
      file: string;
      ceilings: Ceilings;
      secrets: ReadonlyMap<string, Pick<ApiSecret, 'origins'>>;
      nowMs: number;
    };

/** `nextRunAt` is null if there is no schedule. It is also null for files, because the caller computes it. */
export type Checked =
  | { definition: Definition; nextRunAt: number | null }
  | Extract<Parsed, { mistakes: unknown }>;

function checkDefinition(given: ToCheck): Checked {
  const { file } = given;
  if ('yaml' in given) {
    const parsed = parseYamlDefinition(given.yaml, { file });
    return 'definition' in parsed ? { ...parsed, nextRunAt: null } : parsed;
  }
  // Mistakes have no line numbers, because the caller sent JSON, which may be a single line.
  const parsed = parseDefinition(JSON.parse(given.json), { file, lineOf: () => null });
  if ('mistakes' in parsed) return parsed;
  const { definition } = parsed;
  const sentences = [
    ...aboveCeilings(definition, given.ceilings),
    ...apiMistakes(definition.source, given.secrets),
  ];
  if (sentences.length > 0) {
    return { mistakes: sentences.map((message) => ({ file, line: null, message })), omitted: 0 };
  }
  return { definition, nextRunAt: firstRunAt(definition, given.nowMs) };
}
