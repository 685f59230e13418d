/** Checks the `source` of a definition, and what its kind demands of the other settings. */
import { posix } from 'node:path';
import { secretReferences } from '../model/secret-names.ts';
import { PROTOCOLS, type Source } from '../model/workflow.ts';
import { nearest } from '../std/nearest.ts';
import { type Checker, describe, isMissing, orDefault, type Path } from './checker.ts';
import { checkHttpSource } from './http-source.ts';

type Command = Extract<Source, { type: 'command' }>;

const COMMAND_SETTINGS = ['type', 'command', 'protocol', 'stream', 'streams', 'env', 'config'];
const MAX_STREAMS = 1_000;
const MAX_CONFIG_CHARACTERS = 256 * 1024;

/** @returns undefined, with mistakes recorded, when the kind of the source cannot be told */
export function checkSource(
  checker: Checker,
  root: Record<string, unknown>,
  file: string,
): Source | undefined {
  const value = root.source;
  if (isMissing(value)) {
    // Of a misspelt one the mistake has been told.
    if (Object.keys(root).some((key) => nearest(key, ['source']) !== undefined)) return undefined;
    checker.wrong(
      [],
      '`source` is missing. Add, for example, source: { type: command, command: ["./contacts.sh"] }',
    );
    return undefined;
  }
  const type =
    typeof value === 'object' && !Array.isArray(value) ? (value as { type?: unknown }).type : undefined;
  if (type === 'http') return checkHttpSource(checker, root);
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
  // With an unknown type, the known settings are unknown too: the type is the only mistake.
  if (typeof value === 'object' && !Array.isArray(value) && type !== 'command') {
    checker.oneOf(type, ['source', 'type'], ['command', 'http', 'push']);
    return undefined;
  }
  const settings = checker.map(value, ['source'], { known: COMMAND_SETTINGS });
  const source = checkCommandSource(checker, settings, file);
  if (source.protocol === 'singer') checkSingerSettings(checker, root, source);
  return source;
}

/** Refuses the settings that have no effect on workflows whose records are pushed. */
export function checkPushSettings(checker: Checker, root: Record<string, unknown>): void {
  const useless = {
    retries: 'has no place here: a push is never tried again by itself, whoever sent it sends it again',
    schedule: 'has no place here: a push workflow runs when somebody pushes, not by the clock',
    priority: 'has no place here: a push does not wait in the queue',
  };
  for (const [setting, sentence] of Object.entries(useless)) {
    if (!isMissing(root[setting])) checker.wrong([setting], `${sentence}. Remove it`);
  }
  if (root.overlap === 'buffer') {
    checker.wrong(
      ['overlap'],
      'cannot be buffer here: a push does not queue, it waits up to 30 s for the one before it. Remove it',
    );
  }
}

function checkCommandSource(checker: Checker, settings: Record<string, unknown>, file: string): Command {
  const protocol = orDefault<Command['protocol']>(settings.protocol, 'ndjson', () =>
    checker.oneOf(settings.protocol, ['source', 'protocol'], PROTOCOLS),
  );
  const config = checkConfig(checker, settings.config);
  return {
    type: 'command',
    command: checkCommand(checker, settings.command, config !== null),
    protocol,
    streams: checkStreams(checker, settings, protocol),
    env: checkEnv(checker, settings.env),
    config,
    directory: posix.dirname(file),
  };
}

function checkCommand(checker: Checker, value: unknown, hasConfig: boolean): string[] {
  const path = ['source', 'command'];
  if (typeof value === 'string') {
    checker.wrong(path, `must be a list, for no shell splits it: ${JSON.stringify(value.split(/\s+/))}`);
    return [];
  }
  const command =
    checker.texts(value, path, { min: 1, max: 1_000, example: '["node", "contacts.mjs"]' }) ?? [];
  for (const [position, argument] of command.entries()) {
    const at = [...path, position];
    if (argument.includes('\0')) checker.wrong(at, 'must not hold a NUL character');
    // biome-ignore lint/suspicious/noTemplateCurlyInString: this is what people write.
    if (argument.includes('${config}') && !hasConfig) {
      checker.wrong(
        at,
        'names a config that is not there: write `source.config`, a map that becomes the file',
      );
    }
    if (!/\$\{secrets?\b/i.test(argument)) continue;
    checker.wrong(
      at,
      'must not hold a secret: everybody on the machine can read arguments. Put it into `source.env` or `source.config`',
    );
  }
  return command;
}

function checkStreams(
  checker: Checker,
  { stream, streams }: Record<string, unknown>,
  protocol: Command['protocol'],
): string[] | null {
  const path = ['source', isMissing(streams) ? 'stream' : 'streams'];
  if (isMissing(stream) && isMissing(streams)) return null;
  if (protocol !== 'singer') {
    checker.wrong(path, 'has no meaning without `protocol: singer`. Add that, or remove it');
    return null;
  }
  if (isMissing(streams)) {
    const one = checker.text(stream, path, 200);
    return one === undefined ? null : [one];
  }
  if (!isMissing(stream))
    checker.wrong(['source', 'stream'], 'says what `streams` says too. Remove one of them');
  const names = checker.texts(streams, path, { min: 1, max: MAX_STREAMS, example: '[users]' });
  return names === undefined ? null : [...new Set(names)];
}

/** Refuses combinations that would lose records silently. */
function checkSingerSettings(checker: Checker, root: Record<string, unknown>, source: Command): void {
  // biome-ignore lint/suspicious/noTemplateCurlyInString: this is what people write.
  const resumes = source.command.some((argument) => argument.includes('${state}'));
  if (resumes && (isMissing(root.mode) || root.mode === 'replace')) {
    checker.wrong(
      ['mode'],
      'must be upsert or append where a tap is given its state: it then sends only what is new, and replace would remove the rest',
    );
  }
  const several = source.streams === null || source.streams.length > 1;
  if (several && Array.isArray(root.key) && !root.key.includes('_stream')) {
    checker.wrong(
      ['key'],
      'must hold _stream where several streams are taken, or their records would replace each other, such as [_stream, id]. Or take one with `source.stream`',
    );
  }
}

function checkConfig(checker: Checker, value: unknown): Record<string, unknown> | null {
  const path = ['source', 'config'];
  if (isMissing(value)) return null;
  const config = checker.map(value, path, { known: typeof value === 'object' ? Object.keys(value) : [] });
  checkConfigValue(checker, config, path);
  if (JSON.stringify(config).length > MAX_CONFIG_CHARACTERS) checker.wrong(path, 'is longer than 256 KiB');
  return config;
}

function checkConfigValue(checker: Checker, value: unknown, path: Path): void {
  if (typeof value === 'string') {
    if (hasMalformedSecret(value)) checker.wrong(path, MALFORMED_SECRET);
  } else if (typeof value === 'number' && !Number.isFinite(value)) {
    checker.wrong(path, `must be a number that JSON has, found ${value}`);
  } else if (typeof value === 'object' && value !== null) {
    for (const [name, inner] of Object.entries(value)) {
      checkConfigValue(checker, inner, [...path, Array.isArray(value) ? Number(name) : name]);
    }
  }
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
    } else if (hasMalformedSecret(text)) {
      checker.wrong(at, MALFORMED_SECRET);
    } else {
      env[name] = text;
    }
  }
  return env;
}

const MALFORMED_SECRET =
  'holds a secret that is not written as $' + '{secret.NAME}, with letters, digits and single underscores';

function hasMalformedSecret(text: string): boolean {
  return /\$\{secrets?\b/i.test(text.replace(secretReferences(), ''));
}
