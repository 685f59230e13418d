/** A workflow as entered in a form: its mistakes, and the definition that results. */
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

/** The table below has the product of both line counts as its size. */
const MAX_LINES = 2_000;

/** Removed lines come before those that replaced them. Of very long texts the whole middle counts as changed. */
export function lineDiff(before: string, after: string): DiffLine[] {
  const [old, now] = [linesOf(before), linesOf(after)];
  let start = 0;
  while (start < old.length && start < now.length && old[start] === now[start]) start += 1;
  let end = 0;
  while (
    end < old.length - start &&
    end < now.length - start &&
    old[old.length - 1 - end] === now[now.length - 1 - end]
  ) {
    end += 1;
  }
  return [
    ...same(old.slice(0, start)),
    ...between(old.slice(start, old.length - end), now.slice(start, now.length - end)),
    ...same(old.slice(old.length - end)),
  ];
}

/** By the longest lines in common. */
function between(old: readonly string[], now: readonly string[]): DiffLine[] {
  const removed = (text: string): DiffLine => ({ kind: 'removed', text });
  const added = (text: string): DiffLine => ({ kind: 'added', text });
  if (old.length > MAX_LINES || now.length > MAX_LINES) return [...old.map(removed), ...now.map(added)];
  // common[a][b]: how many lines the rests of both have in common.
  const common = Array.from({ length: old.length + 1 }, () => new Uint16Array(now.length + 1));
  const at = (a: number, b: number): number => common[a]?.[b] ?? 0;
  for (let a = old.length - 1; a >= 0; a -= 1) {
    for (let b = now.length - 1; b >= 0; b -= 1) {
      const row = common[a] as Uint16Array;
      row[b] = old[a] === now[b] ? at(a + 1, b + 1) + 1 : Math.max(at(a + 1, b), at(a, b + 1));
    }
  }
  const lines: DiffLine[] = [];
  let [a, b] = [0, 0];
  while (a < old.length && b < now.length) {
    if (old[a] === now[b]) {
      lines.push({ kind: 'same', text: old[a] as string });
      a += 1;
      b += 1;
    } else if (at(a + 1, b) >= at(a, b + 1)) lines.push(removed(old[a++] as string));
    else lines.push(added(now[b++] as string));
  }
  return [...lines, ...old.slice(a).map(removed), ...now.slice(b).map(added)];
}

function same(lines: readonly string[]): DiffLine[] {
  return lines.map((text) => ({ kind: 'same', text }));
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
