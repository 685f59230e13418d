/** Definitions of workflows: from a form, from JSON, as a diff, and their schedules in words. */
import type { Definition, Workflow } from '../../../../client/src/flowhook-client.ts';
import { duration } from '../../parts/format.ts';

/** The fields of the form for a new workflow, as typed. */
export interface Draft {
  id: string;
  name: string;
  type: 'push' | 'http';
  url: string;
  /** Empty: detected from the response. */
  parse: string;
  records: string;
  /** `id = $.contact_id, name = $.title`. */
  fields: string;
  /** Comma-separated names. */
  key: string;
  mode: Workflow['mode'];
  /** `15m`; empty: no schedule. */
  every: string;
}

/** HTML pattern of workflow ids. A URL with the id `.` or `..` would lead to another path, so the service refuses both. */
export const ID_PATTERN = String.raw`\s*(?!\.{1,2}\s*$)[^\/\\\s][^\/\\]*`;

/** The definition of a draft, without its empty fields. @throws Error that names a field that cannot be parsed */
export function definitionFrom(draft: Draft): Definition {
  const key = partsOf(draft.key);
  const shared = { ...filled({ name: draft.name }), ...(key.length === 0 ? {} : { key }), mode: draft.mode };
  if (draft.type === 'push') return { ...shared, source: { type: 'push' } };
  const fields = fieldsOf(draft.fields);
  const every = draft.every.trim();
  return {
    ...shared,
    source: { type: 'http', ...filled({ url: draft.url, parse: draft.parse, records: draft.records }) },
    ...(Object.keys(fields).length === 0 ? {} : { fields }),
    ...(every === '' ? {} : { schedule: { every } }),
  };
}

function filled(values: Record<string, string>): Record<string, string> {
  const trimmed = Object.entries(values).map(([name, value]) => [name, value.trim()]);
  return Object.fromEntries(trimmed.filter(([, value]) => value !== ''));
}

function fieldsOf(text: string): Record<string, string> {
  const pairs = partsOf(text).map((part) => {
    const [, name, path] = /^([^=\s]+)\s*=\s*(.+)$/.exec(part) ?? [];
    if (name === undefined) throw new Error(`Cannot read the field “${part}”. Write it like name = $.title.`);
    return [name, path];
  });
  return Object.fromEntries(pairs);
}

function partsOf(text: string): string[] {
  return text
    .split(',')
    .map((part) => part.trim())
    .filter((part) => part !== '');
}

/** Parses an edited definition. Browsers name the line of a mistake. */
export function parsedDefinition(
  text: string,
): { definition: Record<string, unknown> } | { mistake: string } {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch (error) {
    return { mistake: `Not valid JSON: ${(error as Error).message}` };
  }
  if (typeof value !== 'object' || value === null || Array.isArray(value)) {
    return { mistake: 'A definition must be a JSON object, such as { "source": { "type": "push" } }' };
  }
  return { definition: value as Record<string, unknown> };
}

interface DiffLine {
  kind: 'same' | 'added' | 'removed';
  text: string;
}

/** A diff by common lines at the start and the end. All lines in between count as changed, removed ones first. */
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

/** The scheduler checks every second, so a run that is later than this is waiting for something. */
const DUE_MS = 1_000;

/** `Every 10 min`, `Cron 0 2 * * *, Europe/Berlin`, `On demand` or `When pushed`. */
export function scheduleWords({ schedule, source }: Pick<Workflow, 'schedule' | 'source'>): string {
  if (source.type === 'push') return 'When pushed';
  if (schedule === null) return 'On demand';
  if (schedule.everyMs !== undefined) return `Every ${duration(schedule.everyMs)}`;
  return `Cron ${schedule.cron}, ${schedule.timezone}`;
}

/** Whether a scheduled run is overdue. */
export function isDue(nextRunAt: string | null, nowMs: number): boolean {
  return nextRunAt !== null && Date.parse(nextRunAt) < nowMs - DUE_MS;
}
