/** Definitions of workflows: from a form, from JSON, compared, and their schedules in words. */
import type { Definition, Workflow } from 'flowhook-client';
import { duration } from '../../parts/format.ts';

/** As it is typed. */
export interface Draft {
  id: string;
  name: string;
  type: 'push' | 'http';
  url: string;
  /** Empty: as the answer says. */
  parse: string;
  records: string;
  /** `id = $.contact_id, name = $.title`. */
  fields: string;
  /** Names with commas between. */
  key: string;
  mode: Workflow['mode'];
  /** `15m`; empty: no schedule. */
  every: string;
}

/** Mistakes that can be found without asking the service, by the name of the input. */
export function mistakesIn(draft: Draft): { [name in keyof Draft]?: string } {
  const mistakes: { [name in keyof Draft]?: string } = {};
  const id = draft.id.trim();
  // biome-ignore lint/suspicious/noControlCharactersInRegex: control characters are what must be refused.
  if (!/^[^\u0000-\u001f\u007f/\\]{1,200}$/u.test(id) || id === '.' || id === '..') {
    mistakes.id = '1 to 200 characters, without slashes';
  }
  if (draft.type === 'push') return mistakes;
  if (!isHttpAddress(draft.url.trim())) mistakes.url = 'An address that begins with http:// or https://';
  if (fieldsOf(draft.fields) === undefined) mistakes.fields = 'Such as: id = $.contact_id, name = $.title';
  if (!/^$|^\d+(ms|s|m|h|d)$/.test(draft.every.trim())) mistakes.every = 'A duration, such as 30s, 15m or 2h';
  return mistakes;
}

/** The same as a workflow file. Only for a draft without mistakes. */
export function definitionFrom(draft: Draft): Definition {
  const key = partsOf(draft.key);
  const shared = {
    ...(draft.name.trim() === '' ? {} : { name: draft.name.trim() }),
    ...(key.length === 0 ? {} : { key }),
    mode: draft.mode,
  };
  if (draft.type === 'push') return { ...shared, source: { type: 'push' } };
  const fields = fieldsOf(draft.fields) ?? {};
  return {
    ...shared,
    source: {
      type: 'http',
      url: draft.url.trim(),
      ...(draft.parse === '' ? {} : { parse: draft.parse }),
      ...(draft.records.trim() === '' ? {} : { records: draft.records.trim() }),
    },
    ...(Object.keys(fields).length === 0 ? {} : { fields }),
    ...(draft.every.trim() === '' ? {} : { schedule: { every: draft.every.trim() } }),
  };
}

function isHttpAddress(text: string): boolean {
  return /^https?:\/\//.test(text) && URL.canParse(text);
}

/** undefined: it cannot be read. */
function fieldsOf(text: string): Record<string, string> | undefined {
  const fields: Record<string, string> = {};
  for (const part of partsOf(text)) {
    const [, name, from] = /^([^=\s]+)\s*=\s*(.+)$/.exec(part) ?? [];
    if (name === undefined || from === undefined) return undefined;
    fields[name] = from;
  }
  return fields;
}

function partsOf(text: string): string[] {
  return text
    .split(',')
    .map((part) => part.trim())
    .filter((part) => part !== '');
}

/** A mistake comes with its line, where the browser tells the position. */
export function parsedDefinition(
  text: string,
): { definition: Record<string, unknown> } | { mistake: string } {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch (error) {
    return {
      mistake: `This is not JSON: ${(error as Error).message}${placeOf(text, (error as Error).message)}`,
    };
  }
  if (typeof value !== 'object' || value === null || Array.isArray(value)) {
    return { mistake: 'A definition is an object, such as { "source": { "type": "push" } }' };
  }
  return { definition: value as Record<string, unknown> };
}

function placeOf(text: string, message: string): string {
  if (/line \d+/.test(message)) return '';
  const [, position] = /position (\d+)/.exec(message) ?? [];
  return position === undefined ? '' : ` (line ${text.slice(0, Number(position)).split('\n').length})`;
}

/** Two texts line by line: what is gone, what is new, what stayed. */
interface DiffLine {
  kind: 'same' | 'added' | 'removed';
  text: string;
}

/** What both begin and end with is the same; all between has changed, the removed lines first. */
export function lineDiff(before: string, after: string): DiffLine[] {
  const [old, now] = [linesOf(before), linesOf(after)];
  const most = Math.min(old.length, now.length);
  let start = 0;
  while (start < most && old[start] === now[start]) start += 1;
  let end = 0;
  while (end < most - start && old.at(-1 - end) === now.at(-1 - end)) end += 1;
  const lines = (kind: DiffLine['kind'], of: string[]) => of.map((text) => ({ kind, text }));
  return [
    ...lines('same', old.slice(0, start)),
    ...lines('removed', old.slice(start, old.length - end)),
    ...lines('added', now.slice(start, now.length - end)),
    ...lines('same', old.slice(old.length - end)),
  ];
}

function linesOf(text: string): string[] {
  return text === '' ? [] : text.replace(/\n$/, '').split('\n');
}

/** A run that is late by this much waits for something: the schedule is looked at every second. */
const DUE_MS = 1_000;

/** `every 10 min`, `cron 0 2 * * *, Europe/Berlin`, or that it runs on demand. */
export function scheduleWords({ schedule, source }: Pick<Workflow, 'schedule' | 'source'>): string {
  if (source.type === 'push') return 'when pushed to';
  if (schedule === null) return 'on demand';
  if (schedule.everyMs !== undefined) return `every ${duration(schedule.everyMs)}`;
  return `cron ${schedule.cron}, ${schedule.timezone}`;
}

/** Whether a run should have begun by now. */
export function isDue(nextRunAt: string | null, nowMs: number): boolean {
  return nextRunAt !== null && Date.parse(nextRunAt) < nowMs - DUE_MS;
}
