/** Parses a definition: from a YAML file, or from the settings that a module exports. */
import { posix } from 'node:path';
import { isNestedDeeper } from '../model/record.ts';
import {
  DEFAULT_LIMITS,
  DEFAULT_RETRIES,
  type Definition,
  defaultMinRecords,
  MAX_BACKOFF_MS,
  MAX_PRIORITY,
  MODES,
  ON_INVALID,
  OVERLAPS,
  type Source,
} from '../model/workflow.ts';
import { formatSize, parseSize } from '../std/size.ts';
import {
  type Checker,
  createChecker,
  describe,
  type LineOf,
  type Mistake,
  orDefault,
  type Path,
} from './check.ts';
import { checkSchedule } from './definition-schedule.ts';
import { checkPushSettings, checkSource } from './definition-source.ts';
import { parseDuration } from './duration.ts';
import { readYaml } from './yaml-lines.ts';

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
