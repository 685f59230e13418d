/** Parses a definition: from a YAML file, or from the settings that a module exports. Checks what every kind of source has. */
import { posix } from 'node:path';
import { isNestedDeeper } from '../model/record.ts';
import { checkSchedule as checkCron } from '../model/schedule.ts';
import {
  DEFAULT_LIMITS,
  DEFAULT_RETRIES,
  type Definition,
  defaultMinRecords,
  MAX_BACKOFF_MS,
  MAX_PRIORITY,
  MISSED,
  type Missed,
  MODES,
  ON_INVALID,
  OVERLAPS,
  type Schedule,
  type Source,
} from '../model/workflow.ts';
import { formatSize, parseDuration, parseSize } from '../std/amounts.ts';
import {
  type Checker,
  createChecker,
  describe,
  isMissing,
  type LineOf,
  type Mistake,
  orDefault,
  type Path,
} from './checker.ts';
import { checkPushSettings, checkSource } from './source.ts';
import { readYaml } from './yaml.ts';

/** `untold` counts the mistakes beyond those that are told. */
export type Parsed = { definition: Definition } | { mistakes: Mistake[]; untold: number };

/** Of lists and maps in each other; the checks of what they hold are recursive. */
export const MAX_LEVELS = 100;
const MAX_TIMEOUT_MS = 7 * 24 * 3_600_000;
const MEMORY = { min: 16_000_000, max: 1_000_000_000_000, example: '512MB or 2GB' };
const OUTPUT = { min: 1_000, max: 1_000_000_000_000_000, example: '500MB or 2GB' };
const SETTINGS = [
  'name',
  'key',
  'mode',
  'onInvalid',
  'overlap',
  'schedule',
  'priority',
  'guards',
  'limits',
  'retries',
];
/** Only http sources have `fields`. */
const NOT_HERE = { fields: 'has no place here: only http sources are made of fields. Remove it' };

/**
 * Parses a YAML definition and fills in all defaults.
 *
 * @param options.file its path in the workflows directory, with forward slashes: `team/id.yaml`
 * @returns the definition, or all mistakes with their lines
 */
export function parseYamlDefinition(text: string, options: { file: string }): Parsed {
  const yaml = readYaml(text, options.file);
  if ('mistakes' in yaml) return yaml;
  return parseDefinition(yaml.value, { ...options, lineOf: yaml.lineOf });
}

/** Parses what a YAML definition holds, as `parseYamlDefinition` does. */
export function parseDefinition(value: unknown, options: { file: string; lineOf: LineOf }): Parsed {
  const checker = createChecker(options.file, options.lineOf);
  if (typeof value === 'object' && value !== null && isNestedDeeper(value, MAX_LEVELS)) {
    checker.wrong([], `Its lists and maps lie in each other more than ${MAX_LEVELS} levels deep`);
    return { mistakes: checker.mistakes, untold: 0 };
  }
  const isHttp = (value as { source?: { type?: unknown } } | null)?.source?.type === 'http';
  const root = checker.map(value, [], {
    known: [...SETTINGS, 'source', ...(isHttp ? ['fields'] : [])],
    misplaced: NOT_HERE,
  });
  const source = checkSource(checker, root, options.file);
  if (source?.type === 'push') checkPushSettings(checker, root);
  return finish(checker, root, source, options.file);
}

/**
 * Checks the settings of a module (its `export const workflow`, as JSON) and fills in all defaults.
 *
 * @param options.line the line of that export, for mistakes
 */
export function parseModuleDefinition(
  settings: unknown,
  options: { file: string; line: number | null },
): Parsed {
  const lineOf: LineOf = () => options.line;
  const checker = createChecker(options.file, lineOf);
  const root = checker.map(settings, [], {
    known: SETTINGS,
    misplaced: { ...NOT_HERE, source: 'must be left out: the module itself is the source' },
  });
  return finish(checker, root, { type: 'module', file: options.file }, options.file);
}

function finish(
  checker: Checker,
  root: Record<string, unknown>,
  source: Source | undefined,
  file: string,
): Parsed {
  const id = posix.basename(file, posix.extname(file));
  const settings = checkSettings(checker, root, { id, isHttp: source?.type === 'http' });
  if (checker.mistakes.length > 0 || source === undefined) {
    return { mistakes: byLine(checker.mistakes), untold: checker.untold() };
  }
  return { definition: { ...settings, source } };
}

function checkSettings(
  checker: Checker,
  root: Record<string, unknown>,
  { id, isHttp }: { id: string; isHttp: boolean },
): Omit<Definition, 'source'> {
  const guards = checker.map(root.guards, ['guards'], {
    known: ['minRecords', 'maxDropPercent', ...(isHttp ? ['required', 'minFilledPercent'] : [])],
  });
  const limits = checker.map(root.limits, ['limits'], {
    known: ['timeout', 'memory', 'output', 'records'],
  });
  const retries = checker.map(root.retries, ['retries'], { known: ['max', 'backoff'] });

  const whole = { min: 0, max: 1_000_000_000, whole: true };
  const mode = orDefault(root.mode, 'replace', () => checker.oneOf(root.mode, ['mode'], MODES));
  return {
    name: orDefault(root.name, id, () => checker.text(root.name, ['name'], 200)),
    key: orDefault<string[]>(root.key, [], () => checkKey(checker, root.key)),
    mode,
    onInvalid: orDefault(root.onInvalid, 'fail', () =>
      checker.oneOf(root.onInvalid, ['onInvalid'], ON_INVALID),
    ),
    overlap: orDefault(root.overlap, 'reject', () => checker.oneOf(root.overlap, ['overlap'], OVERLAPS)),
    schedule: checkSchedule(checker, root.schedule),
    priority: orDefault(root.priority, 0, () =>
      checker.number(root.priority, ['priority'], { min: -MAX_PRIORITY, max: MAX_PRIORITY, whole: true }),
    ),
    guards: {
      minRecords: orDefault(guards.minRecords, defaultMinRecords(mode), () =>
        checker.number(guards.minRecords, ['guards', 'minRecords'], whole),
      ),
      maxDropPercent: orDefault<number | null>(guards.maxDropPercent, null, () =>
        checker.number(guards.maxDropPercent, ['guards', 'maxDropPercent'], {
          min: 0,
          max: 100,
          whole: false,
        }),
      ),
    },
    limits: {
      timeoutMs: orDefault<number>(limits.timeout, DEFAULT_LIMITS.timeoutMs, () =>
        checkDuration(checker, limits.timeout, ['limits', 'timeout'], {
          maxMs: MAX_TIMEOUT_MS,
          max: '168h',
        }),
      ),
      records: orDefault<number>(limits.records, DEFAULT_LIMITS.records, () =>
        checker.number(limits.records, ['limits', 'records'], { ...whole, min: 1 }),
      ),
      memoryBytes: orDefault<number>(limits.memory, DEFAULT_LIMITS.memoryBytes, () =>
        checkSize(checker, limits.memory, ['limits', 'memory'], MEMORY),
      ),
      outputBytes: orDefault<number>(limits.output, DEFAULT_LIMITS.outputBytes, () =>
        checkSize(checker, limits.output, ['limits', 'output'], OUTPUT),
      ),
    },
    retries: {
      max: orDefault<number>(retries.max, DEFAULT_RETRIES.max, () =>
        checker.number(retries.max, ['retries', 'max'], { ...whole, max: 100 }),
      ),
      backoffMs: orDefault<number>(retries.backoff, DEFAULT_RETRIES.backoffMs, () =>
        checkDuration(checker, retries.backoff, ['retries', 'backoff'], {
          maxMs: MAX_BACKOFF_MS,
          max: '10m',
        }),
      ),
    },
  };
}

function checkKey(checker: Checker, value: unknown): string[] | undefined {
  const key = checker.texts(value, ['key'], { min: 1, max: 16, example: '[id]' });
  if (key === undefined || new Set(key).size === key.length) return key;
  checker.wrong(['key'], 'names a field twice');
  return undefined;
}

function checkDuration(
  checker: Checker,
  value: unknown,
  path: Path,
  most: { maxMs: number; max: string },
): number | undefined {
  const ms = parseDuration(value);
  if (ms !== undefined && ms >= 1 && ms <= most.maxMs) return ms;
  const unit = typeof value === 'number' ? ': add a unit' : '';
  checker.wrong(
    path,
    `must be a duration such as 500ms, 30s, 15m or 2h, at most ${most.max}, found ${describe(value)}${unit}`,
  );
  return undefined;
}

function checkSize(
  checker: Checker,
  value: unknown,
  path: Path,
  { min, max, example }: { min: number; max: number; example: string },
): number | undefined {
  const bytes = parseSize(value);
  if (bytes !== undefined && bytes >= min && bytes <= max) return bytes;
  const unit = typeof value === 'number' ? ': add a unit' : '';
  checker.wrong(
    path,
    `must be a size such as ${example}, from ${formatSize(min)} to ${formatSize(max)}, found ${describe(value)}${unit}`,
  );
  return undefined;
}

/** In the order of the file. */
function byLine(mistakes: readonly Mistake[]): Mistake[] {
  return mistakes.toSorted((a, b) => (a.line ?? 0) - (b.line ?? 0));
}

const PATH = ['schedule'];
const MIN_EVERY_MS = 60_000;
const MAX_EVERY_MS = 366 * 86_400_000;

/**
 * Reads a bare cron expression, `{ cron, timezone, missed }` or `{ every, missed }`.
 *
 * @returns null if the schedule is missing or, with a mistake recorded, wrong
 */
function checkSchedule(checker: Checker, value: unknown): Schedule | null {
  if (isMissing(value)) return null;
  if (typeof value === 'string') return checkText(checker, value);
  const schedule = checker.map(value, PATH, { known: ['cron', 'timezone', 'every', 'missed'] });
  if (typeof value !== 'object' || Array.isArray(value)) return null;
  const missed = orDefault<Missed>(schedule.missed, 'run', () =>
    checker.oneOf(schedule.missed, [...PATH, 'missed'], MISSED),
  );
  if (isMissing(schedule.cron) === isMissing(schedule.every)) {
    checker.wrong(
      PATH,
      `must hold either \`cron\`, such as { cron: "0 6 * * 1-5", timezone: Europe/Berlin }, or \`every\`, such as { every: 15m }`,
    );
    return null;
  }
  if (isMissing(schedule.every)) return readCron(checker, schedule, missed);
  if (!isMissing(schedule.timezone)) {
    checker.wrong(
      [...PATH, 'timezone'],
      'has no place beside `every`, which counts from midnight UTC. Remove it',
    );
  }
  return checkEvery(checker, schedule.every, missed);
}

function checkText(checker: Checker, text: string): Schedule | null {
  if (parseDuration(text) !== undefined) {
    checker.wrong(PATH, `must be a cron expression or a map. Write { every: ${text} }`);
    return null;
  }
  const wrong = checkCron(text, 'UTC');
  if (wrong !== undefined) checker.wrong(PATH, wrong);
  return { cron: text, timezone: 'UTC', missed: 'run' };
}

function readCron(checker: Checker, schedule: Record<string, unknown>, missed: Missed): Schedule | null {
  const path = [...PATH, 'cron'];
  const cron = checker.text(schedule.cron, path, 200);
  const timezone = isMissing(schedule.timezone)
    ? 'UTC'
    : checker.text(schedule.timezone, [...PATH, 'timezone'], 100);
  if (cron === undefined || timezone === undefined) return null;
  const wrong = checkCron(cron, timezone);
  const blamed = checkCron('* * * * *', timezone) === undefined ? path : [...PATH, 'timezone'];
  if (wrong !== undefined) checker.wrong(blamed, wrong);
  return { cron, timezone, missed };
}

function checkEvery(checker: Checker, value: unknown, missed: Missed): Schedule | null {
  const everyMs = parseDuration(value);
  if (everyMs !== undefined && everyMs >= MIN_EVERY_MS && everyMs <= MAX_EVERY_MS) return { everyMs, missed };
  const unit = typeof value === 'number' ? ': add a unit' : '';
  checker.wrong(
    [...PATH, 'every'],
    `must be a duration such as 15m, 6h or 1d, from 1m to 366d, found ${describe(value)}${unit}`,
  );
  return null;
}
