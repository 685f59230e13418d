/** Reads a definition: from a YAML file, or from the settings that a module exports. */
import { posix } from 'node:path';
import {
  DEFAULT_LIMITS,
  DEFAULT_RETRIES,
  type Definition,
  defaultMinRecords,
  MAX_BACKOFF_MS,
  MODES,
  ON_INVALID,
  OVERLAPS,
  type Source,
} from '../model/workflow.ts';
import {
  type Checker,
  createChecker,
  describe,
  isMissing,
  type LineOf,
  type Mistake,
  type Path,
} from './check.ts';
import { parseDuration } from './duration.ts';
import { secretReferences } from './secret-names.ts';
import { readYaml } from './yaml-lines.ts';

export type Parsed = { definition: Definition } | { mistakes: Mistake[] };

const LATER = 'does not exist in this version yet. Remove it: nothing would act on it';
const MAX_TIMEOUT_MS = 7 * 24 * 3_600_000;
const SETTINGS = ['name', 'key', 'mode', 'onInvalid', 'overlap', 'guards', 'limits', 'retries'];
const SETTINGS_LATER = { schedule: LATER, fields: LATER };

/**
 * Reads a YAML definition and fills in every default. All of its mistakes are answered, each with its line.
 *
 * @param options.file its path inside the workflows directory, with forward slashes: `team/id.yaml`
 */
export function parseYamlDefinition(text: string, options: { file: string }): Parsed {
  const yaml = readYaml(text, options.file);
  if ('mistakes' in yaml) return yaml;
  const checker = createChecker(options.file, yaml.lineOf);
  const root = checker.map(yaml.value, [], { known: [...SETTINGS, 'source'], later: SETTINGS_LATER });
  const source = checkSource(checker, root.source, options.file);
  if (source?.type === 'push') checkPushSettings(checker, root);
  return finish(checker, root, source, options.file);
}

/**
 * Reads the settings of a module (its `export const workflow`, as JSON).
 *
 * @param options.line where the module exports them, for its mistakes
 */
export function parseModuleDefinition(
  settings: unknown,
  options: { file: string; line: number | null },
): Parsed {
  const lineOf: LineOf = () => options.line;
  const checker = createChecker(options.file, lineOf);
  const root = checker.map(settings, [], {
    known: SETTINGS,
    later: { ...SETTINGS_LATER, source: 'must be left out: the module itself is the source' },
  });
  return finish(checker, root, { type: 'module', file: options.file }, options.file);
}

function finish(
  checker: Checker,
  root: Record<string, unknown>,
  source: Source | undefined,
  file: string,
): Parsed {
  const settings = checkSettings(checker, root, posix.basename(file, posix.extname(file)));
  if (checker.mistakes.length > 0 || source === undefined) return { mistakes: checker.mistakes };
  return { definition: { ...settings, source } };
}

function checkSettings(
  checker: Checker,
  root: Record<string, unknown>,
  id: string,
): Omit<Definition, 'source'> {
  const guards = checker.map(root.guards, ['guards'], { known: ['minRecords', 'maxDropPercent'] });
  const limits = checker.map(root.limits, ['limits'], {
    known: ['timeout', 'records'],
    later: { memory: LATER },
  });
  const retries = checker.map(root.retries, ['retries'], { known: ['max', 'backoff'] });

  /** The checked value of a setting, or its default when it is missing (or wrong, which ends in a mistake). */
  function or<T>(value: unknown, missing: T, check: () => T | undefined): T {
    return isMissing(value) ? missing : (check() ?? missing);
  }
  const whole = { min: 0, max: 1_000_000_000, whole: true };
  const mode = or(root.mode, 'replace', () => checker.oneOf(root.mode, ['mode'], MODES));
  return {
    name: or(root.name, id, () => checker.text(root.name, ['name'], 200)),
    key: or<string[]>(root.key, [], () => checkKey(checker, root.key)),
    mode,
    onInvalid: or(root.onInvalid, 'fail', () => checker.oneOf(root.onInvalid, ['onInvalid'], ON_INVALID)),
    overlap: or(root.overlap, 'reject', () => checker.oneOf(root.overlap, ['overlap'], OVERLAPS)),
    guards: {
      minRecords: or(guards.minRecords, defaultMinRecords(mode), () =>
        checker.number(guards.minRecords, ['guards', 'minRecords'], whole),
      ),
      maxDropPercent: or<number | null>(guards.maxDropPercent, null, () =>
        checker.number(guards.maxDropPercent, ['guards', 'maxDropPercent'], {
          min: 0,
          max: 100,
          whole: false,
        }),
      ),
    },
    limits: {
      timeoutMs: or<number>(limits.timeout, DEFAULT_LIMITS.timeoutMs, () =>
        checkDuration(checker, limits.timeout, ['limits', 'timeout'], {
          maxMs: MAX_TIMEOUT_MS,
          max: '168h',
        }),
      ),
      records: or<number>(limits.records, DEFAULT_LIMITS.records, () =>
        checker.number(limits.records, ['limits', 'records'], { ...whole, min: 1 }),
      ),
    },
    retries: {
      max: or<number>(retries.max, DEFAULT_RETRIES.max, () =>
        checker.number(retries.max, ['retries', 'max'], { ...whole, max: 100 }),
      ),
      backoffMs: or<number>(retries.backoff, DEFAULT_RETRIES.backoffMs, () =>
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

function checkSource(checker: Checker, value: unknown, file: string): Source | undefined {
  if (isMissing(value)) {
    checker.wrong(
      [],
      '`source` is missing. Add, for example, source: { type: command, command: ["./contacts.sh"] }',
    );
    return undefined;
  }
  const type =
    typeof value === 'object' && !Array.isArray(value) ? (value as { type?: unknown }).type : undefined;
  if (type === 'http') {
    checker.wrong(
      ['source', 'type'],
      'http does not exist in this version yet. Those that exist: command, push, and modules (.mts files)',
    );
    return undefined;
  }
  if (type === 'push') {
    checker.map(value, ['source'], { known: ['type'] });
    return { type: 'push' };
  }
  if (type === 'module') {
    checker.wrong(
      ['source', 'type'],
      'cannot be module here: a .mts file in this folder is a workflow by itself, with its settings in `export const workflow`',
    );
    return undefined;
  }
  const source = checker.map(value, ['source'], { known: ['type', 'command', 'protocol', 'env'] });
  checker.oneOf(source.type, ['source', 'type'], ['command', 'push']);
  if (source.protocol === 'singer') checker.wrong(['source', 'protocol'], `singer ${LATER}`);
  else if (!isMissing(source.protocol)) checker.oneOf(source.protocol, ['source', 'protocol'], ['ndjson']);
  return {
    type: 'command',
    command: checkCommand(checker, source.command),
    protocol: 'ndjson',
    env: checkEnv(checker, source.env),
    directory: posix.dirname(file),
  };
}

/** Refuses what would have no effect where records arrive by themselves. */
function checkPushSettings(checker: Checker, root: Record<string, unknown>): void {
  if (!isMissing(root.retries)) {
    checker.wrong(
      ['retries'],
      'has no place here: a push is never tried again by itself, whoever sent it sends it again. Remove it',
    );
  }
  if (root.overlap === 'buffer') {
    checker.wrong(
      ['overlap'],
      'cannot be buffer here: a push does not queue, it waits up to 30 s for the one before it. Remove it',
    );
  }
}

function checkCommand(checker: Checker, value: unknown): string[] {
  const path = ['source', 'command'];
  if (typeof value === 'string') {
    checker.wrong(path, `must be a list, for no shell splits it: ${JSON.stringify(value.split(/\s+/))}`);
    return [];
  }
  const command =
    checker.texts(value, path, { min: 1, max: 1_000, example: '["node", "contacts.mjs"]' }) ?? [];
  for (const [position, argument] of command.entries()) {
    if (argument.includes('\0')) checker.wrong([...path, position], 'must not hold a NUL character');
    if (!/\$\{secrets?\b/i.test(argument)) continue;
    checker.wrong(
      [...path, position],
      'must not hold a secret: everybody on the machine can read arguments. Put it into `source.env`',
    );
  }
  return command;
}

function checkEnv(checker: Checker, value: unknown): Record<string, string> {
  const path = ['source', 'env'];
  const env: Record<string, string> = {};
  if (isMissing(value)) return env;
  if (typeof value !== 'object' || Array.isArray(value)) {
    checker.wrong(path, `must be a map of names to texts, found ${describe(value)}`);
    return env;
  }
  for (const [name, text] of Object.entries(value)) {
    const at = [...path, name];
    if (!/^[A-Za-z_][A-Za-z0-9_]*$/.test(name)) {
      checker.wrong(at, 'is not a name that an environment variable can have: letters, digits and _');
    } else if (name === 'TMPDIR' || name.startsWith('FLOWHOOK_')) {
      checker.wrong(at, 'is set by Flowhook itself: choose another name');
    } else if (typeof text !== 'string') {
      checker.wrong(at, `must be a text, found ${describe(text)}: put it into quotes`);
    } else if (text.includes('\0')) {
      checker.wrong(at, 'must not hold a NUL character');
    } else if (/\$\{secrets?\b/i.test(text.replace(secretReferences(), ''))) {
      checker.wrong(
        at,
        `holds a secret that is not written as \${secret.NAME}, with letters, digits and single underscores`,
      );
    } else {
      env[name] = text;
    }
  }
  return env;
}
