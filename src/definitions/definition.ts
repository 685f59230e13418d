/** Parses a definition from a YAML file or from the settings of a module, and checks the settings of all kinds of sources. */
import { posix } from 'node:path';
import { fieldNames } from '../model/http-source.ts';
import { isNestedDeeper } from '../model/record.ts';
import { checkSchedule as checkCron } from '../model/schedule.ts';
import {
  COMPARES,
  DEFAULT_LIMITS,
  DEFAULT_RETRIES,
  type Definition,
  type Keep,
  MAX_PRIORITY,
  MISSED,
  type Missed,
  MODES,
  MOST_KEPT,
  ON_INVALID,
  OVERLAPS,
  type Schedule,
  type Source,
} from '../model/workflow.ts';
import { parseDuration } from '../std/amounts.ts';
import { checkExpect } from './expect.ts';
import {
  addUnit,
  asMap,
  Checker,
  durationWithin,
  isMissing,
  type LineOf,
  type Mistake,
  Section,
} from './section.ts';
import { checkSource } from './source.ts';
import { readYaml } from './yaml.ts';

/** Only the first 100 mistakes are listed. `omitted` is the number of further mistakes. */
export type Parsed = { definition: Definition } | { mistakes: Mistake[]; omitted: number };

/** Lists and maps may be nested this deep. The depth is limited because the checks are recursive. */
export const MAX_LEVELS = 100;
const MEMORY = { min: 16_000_000, max: 1_000_000_000_000, example: '512MB or 2GB' };
const OUTPUT = { min: 1_000, max: 1_000_000_000_000_000, example: '500MB or 2GB' };
const COUNT = { min: 0, max: 1_000_000_000 };
const SETTINGS = [
  'name',
  'key',
  'mode',
  'onInvalid',
  'overlap',
  'schedule',
  'priority',
  'expect',
  'guards',
  'limits',
  'retries',
  'keep',
  'compare',
];
/** Settings of sources that often end up at the top level of a definition, because their author did not indent them. */
const OF_SOURCE = ['type', 'command', 'url', 'method', 'headers', 'parse', 'records', 'paginate', 'follow'];
const MISPLACED = {
  // Only http sources have them.
  fields: 'is not allowed here: only http sources have `fields`. Remove it',
  fresh: belongsUnder('expect'),
  otherwise: belongsUnder('expect'),
  versions: belongsUnder('keep'),
  days: belongsUnder('keep'),
};

/**
 * Parses a YAML definition and fills in all defaults.
 *
 * @param options.file the path within the workflows directory, with forward slashes: `team/id.yaml`
 * @returns the definition, or all mistakes with their lines
 */
export function parseYamlDefinition(text: string, options: { file: string }): Parsed {
  const yaml = readYaml(text, options.file);
  if ('mistakes' in yaml) return yaml;
  return parseDefinition(yaml.value, { ...options, lineOf: yaml.lineOf });
}

/** Like `parseYamlDefinition`, for a parsed value. */
export function parseDefinition(value: unknown, { file, lineOf }: { file: string; lineOf: LineOf }): Parsed {
  const checker = new Checker(file, lineOf);
  if (typeof value === 'object' && value !== null && isNestedDeeper(value, MAX_LEVELS)) {
    checker.wrong(
      [],
      `The definition is nested more than ${MAX_LEVELS} levels deep. Flatten its lists and maps`,
    );
    return { mistakes: checker.mistakes, omitted: 0 };
  }
  const isHttp = asMap(asMap(value)?.source)?.type === 'http';
  const known = [...SETTINGS, 'source', ...(isHttp ? ['fields'] : [])];
  const ofSource = OF_SOURCE.map((name) => [
    name,
    // The `records` of a source are a path, and those of `expect` are a map.
    belongsUnder(name === 'records' && asMap(asMap(value)?.records) !== undefined ? 'expect' : 'source'),
  ]);
  const root = new Section(checker, value, [], known, { ...MISPLACED, ...Object.fromEntries(ofSource) });
  return finish(root, checkSource(root, file), file);
}

/**
 * Checks the settings of a module (its `export const workflow`, as JSON) and fills in all defaults.
 *
 * @param options.line the line of `export const workflow`, to which mistakes refer
 */
export function parseModuleDefinition(
  settings: unknown,
  { file, line }: { file: string; line: number | null },
): Parsed {
  const root = new Section(new Checker(file, () => line), settings, [], SETTINGS, {
    ...MISPLACED,
    source: 'must be left out: the module itself is the source',
  });
  return finish(root, { type: 'module', file }, file);
}

function belongsUnder(name: string): string {
  return `belongs under \`${name}:\`. Indent it by two spaces`;
}

function finish(root: Section, source: Source | undefined, file: string): Parsed {
  const id = posix.basename(file, posix.extname(file));
  const fields = source?.type === 'http' ? fieldNames(source) : undefined;
  const settings = checkSettings(root, { id, fields });
  const { mistakes, omitted } = root.checker;
  if (mistakes.length > 0 || source === undefined) {
    return { mistakes: mistakes.toSorted((a, b) => (a.line ?? 0) - (b.line ?? 0)), omitted };
  }
  return { definition: { ...settings, source } };
}

function checkSettings(
  root: Section,
  { id, fields }: { id: string; fields: readonly string[] | undefined },
): Omit<Definition, 'source'> {
  const limits = root.section('limits', ['timeout', 'memory', 'output', 'records']);
  const retries = root.section('retries', ['max', 'backoff']);
  return {
    name: root.text('name', 200, id),
    key: checkKey(root),
    mode: root.oneOf('mode', MODES, 'replace'),
    onInvalid: root.oneOf('onInvalid', ON_INVALID, 'fail'),
    overlap: root.oneOf('overlap', OVERLAPS, 'reject'),
    schedule: checkSchedule(root),
    priority: root.number('priority', { min: -MAX_PRIORITY, max: MAX_PRIORITY }, 0),
    expect: checkExpect(root, fields),
    limits: {
      timeoutMs: limits.duration('timeout', '168h', DEFAULT_LIMITS.timeoutMs),
      records: limits.number('records', { ...COUNT, min: 1 }, DEFAULT_LIMITS.records),
      memoryBytes: limits.size('memory', MEMORY, DEFAULT_LIMITS.memoryBytes),
      outputBytes: limits.size('output', OUTPUT, DEFAULT_LIMITS.outputBytes),
    },
    retries: {
      max: retries.number('max', { ...COUNT, max: 100 }, DEFAULT_RETRIES.max),
      backoffMs: retries.duration('backoff', '10m', DEFAULT_RETRIES.backoffMs),
    },
    ...checkKeep(root),
    ...(root.has('compare') ? { compare: root.oneOf('compare', COMPARES, 'value') } : {}),
  };
}

/** If only one of the limits is given, the other one is as high as possible: `keep: { days: 90 }` keeps 90 days. */
function checkKeep(root: Section): { keep?: Keep } {
  const keep = root.section('keep', ['versions', 'days'], '{ versions: 500, days: 90 }');
  if (!keep.has('versions') && !keep.has('days')) return {};
  return {
    keep: {
      versions: keep.number('versions', { min: 1, max: MOST_KEPT.versions }, MOST_KEPT.versions),
      days: keep.number('days', { min: 1, max: MOST_KEPT.days }, MOST_KEPT.days),
    },
  };
}

function checkKey(root: Section): string[] {
  const key = root.texts('key', { max: 16, example: '[id]' }, []);
  if (new Set(key).size === key.length) return key;
  root.wrong('key', 'lists a field twice');
  return [];
}

/**
 * Reads a cron expression, `{ cron, timezone, missed }` or `{ every, missed }`.
 *
 * @returns null if the schedule is missing or invalid
 */
function checkSchedule(root: Section): Schedule | null {
  const value = root.values.schedule;
  if (isMissing(value)) return null;
  if (typeof value === 'string') return checkBareCron(root, value);
  const schedule = root.section('schedule', ['cron', 'timezone', 'every', 'missed']);
  if (asMap(value) === undefined) return null;
  const missed = schedule.oneOf('missed', MISSED, 'run');
  if (schedule.has('cron') === schedule.has('every')) {
    root.wrong(
      'schedule',
      `must have either \`cron\`, such as { cron: "0 6 * * 1-5", timezone: Europe/Berlin }, or \`every\`, such as { every: 15m }`,
    );
    return null;
  }
  if (schedule.has('cron')) return checkCronIn(schedule, missed);
  if (schedule.has('timezone')) {
    schedule.wrong('timezone', 'cannot be used with `every`, which counts from midnight UTC. Remove it');
  }
  const everyMs = schedule.read(
    'every',
    'must be a duration such as 15m, 6h or 1d, from 1m to 366d',
    (every) => durationWithin(every, '1m', '366d'),
    null,
    addUnit,
  );
  return everyMs === null ? null : { everyMs, missed };
}

function checkBareCron(root: Section, cron: string): Schedule | null {
  if (parseDuration(cron) !== undefined) {
    root.wrong('schedule', `must be a cron expression or a map. Write { every: ${cron} }`);
    return null;
  }
  const wrong = checkCron(cron, 'UTC');
  if (wrong !== undefined) root.wrong('schedule', wrong);
  return { cron, timezone: 'UTC', missed: 'run' };
}

function checkCronIn(schedule: Section, missed: Missed): Schedule | null {
  const cron = schedule.text('cron', 200, null);
  const timezone = schedule.has('timezone') ? schedule.text('timezone', 100) : 'UTC';
  if (cron === null || timezone === undefined) return null;
  const wrong = checkCron(cron, timezone);
  const isZone = checkCron('* * * * *', timezone) !== undefined;
  if (wrong !== undefined) schedule.wrong(isZone ? 'timezone' : 'cron', wrong);
  return { cron, timezone, missed };
}
