/**
 * The most that a definition made over the API may ask for: the operator's settings. Definitions in files are the
 * operator's own, and are not bound.
 */
import { type Definition, isOfApi, type Workflow } from '../model/workflow.ts';
import { bytesWords, durationWords, grouped } from '../std/amounts.ts';

export interface Ceilings {
  timeoutMs: number;
  memoryBytes: number;
  outputBytes: number;
  records: number;
  retries: number;
}

export const NO_CEILINGS: Ceilings = {
  timeoutMs: Number.POSITIVE_INFINITY,
  memoryBytes: Number.POSITIVE_INFINITY,
  outputBytes: Number.POSITIVE_INFINITY,
  records: Number.POSITIVE_INFINITY,
  retries: Number.POSITIVE_INFINITY,
};

/** One that a definition can name: how it reads it, and what writes its value in words. */
interface Bound {
  name: string;
  setting: string;
  of(definition: Definition): number;
  words(value: number): string;
}

const BOUNDS: Readonly<Record<keyof Ceilings, Bound>> = {
  timeoutMs: {
    name: 'limits.timeout',
    setting: 'FLOWHOOK_MAX_API_TIMEOUT',
    of: ({ limits }) => limits.timeoutMs,
    words: durationWords,
  },
  memoryBytes: {
    name: 'limits.memory',
    setting: 'FLOWHOOK_MAX_API_MEMORY',
    of: ({ limits }) => limits.memoryBytes,
    words: bytesWords,
  },
  outputBytes: {
    name: 'limits.output',
    setting: 'FLOWHOOK_MAX_API_OUTPUT',
    of: ({ limits }) => limits.outputBytes,
    words: bytesWords,
  },
  records: {
    name: 'limits.records',
    setting: 'FLOWHOOK_MAX_API_RECORDS',
    of: ({ limits }) => limits.records,
    words: grouped,
  },
  retries: {
    name: 'retries.max',
    setting: 'FLOWHOOK_MAX_API_RETRIES',
    of: ({ retries }) => retries.max,
    words: grouped,
  },
};

/** A sentence for each setting of the definition that is above the operator's ceiling. */
export function aboveCeilings(definition: Definition, ceilings: Ceilings): string[] {
  return Object.entries(BOUNDS).flatMap(([field, { name, setting, of, words }]) => {
    const most = ceilings[field as keyof Ceilings];
    const asked = of(definition);
    if (asked <= most) return [];
    return [
      `\`${name}\` is ${words(asked)}, and workflows made over the API may ask for at most ${words(most)} here: ` +
        `ask for less, or have the operator raise ${setting} or define the workflow in a file`,
    ];
  });
}

/** The workflow as it runs: one made over the API before the ceilings were set, or lowered, is held to them as well. */
export function withinCeilings(workflow: Workflow, ceilings: Ceilings = NO_CEILINGS): Workflow {
  if (!isOfApi(workflow)) return workflow;
  const { definition } = workflow;
  const { limits, retries } = definition;
  return {
    ...workflow,
    definition: {
      ...definition,
      limits: {
        timeoutMs: Math.min(limits.timeoutMs, ceilings.timeoutMs),
        memoryBytes: Math.min(limits.memoryBytes, ceilings.memoryBytes),
        outputBytes: Math.min(limits.outputBytes, ceilings.outputBytes),
        records: Math.min(limits.records, ceilings.records),
      },
      retries: { ...retries, max: Math.min(retries.max, ceilings.retries) },
    },
  };
}
