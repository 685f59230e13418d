/** Checks the `source` of a definition, and the other settings that depend on its type. */
import { posix } from 'node:path';
import { secretReferences } from '../model/secret-names.ts';
import { PROTOCOLS, type Source } from '../model/workflow.ts';
import { nearest } from '../std/nearest.ts';
import { checkHttpSource } from './http-source.ts';
import { asMap, isMissing, leavesOf, type Section } from './section.ts';

type Command = Extract<Source, { type: 'command' }>;

const COMMAND_SETTINGS = ['type', 'command', 'protocol', 'stream', 'streams', 'env', 'config'];
const MAX_STREAMS = 1_000;
const MAX_CONFIG_CHARACTERS = 256 * 1024;

/** @returns undefined if the type of the source is unknown, which is recorded as a mistake */
export function checkSource(root: Section, file: string): Source | undefined {
  const value = root.values.source;
  if (isMissing(value)) {
    // A misspelled `source` has already been recorded as a mistake.
    if (Object.keys(root.values).some((key) => nearest(key, ['source']) !== undefined)) return undefined;
    root.checker.wrong(
      [],
      '`source` is missing. Add, for example, source: { type: command, command: ["./contacts.sh"] }',
    );
    return undefined;
  }
  const type = asMap(value)?.type;
  if (type === 'http') return checkHttpSource(root);
  if (type === 'push') {
    root.section('source', ['type']);
    checkPushSettings(root);
    return { type: 'push' };
  }
  if (type === 'module') {
    root
      .section('source', null)
      .wrong(
        'type',
        'cannot be module in YAML. Put the .mts file into this folder instead: it is a workflow of its own, with its settings in `export const workflow`',
      );
    return undefined;
  }
  // The allowed settings depend on the type, so if the type is unknown, only the type is reported.
  if (asMap(value) !== undefined && type !== 'command') {
    root.section('source', null).oneOf('type', ['command', 'http', 'push']);
    return undefined;
  }
  const source = checkCommandSource(root.section('source', COMMAND_SETTINGS), file);
  if (source.protocol === 'singer') checkSingerSettings(root, source);
  return source;
}

/** Refuses settings that have no effect on push workflows. */
function checkPushSettings(root: Section): void {
  const useless = {
    retries: 'does not apply to push workflows: the client retries, Flowhook does not',
    schedule: 'does not apply to push workflows: they run when a client pushes records',
    priority: 'does not apply to push workflows: a push does not wait in the queue',
  };
  for (const [setting, sentence] of Object.entries(useless)) {
    if (root.has(setting)) root.wrong(setting, `${sentence}. Remove it`);
  }
  if (root.values.overlap === 'buffer') {
    root.wrong(
      'overlap',
      'cannot be buffer in a push workflow: a push is not queued, but waits up to 30 s for the previous one. Remove it',
    );
  }
}

function checkCommandSource(source: Section, file: string): Command {
  const protocol = source.oneOf('protocol', PROTOCOLS, 'ndjson');
  const config = checkConfig(source);
  return {
    type: 'command',
    command: checkCommand(source, config !== null),
    protocol,
    streams: checkStreams(source, protocol),
    env: checkEnv(source),
    config,
    directory: posix.dirname(file),
  };
}

function checkCommand(source: Section, hasConfig: boolean): string[] {
  const value = source.values.command;
  if (typeof value === 'string') {
    const list = JSON.stringify(value.split(/\s+/));
    source.wrong('command', `must be a list, because no shell splits it. Write ${list}`);
    return [];
  }
  const command = source.texts('command', { max: 1_000, example: '["node", "contacts.mjs"]' }) ?? [];
  for (const [position, argument] of command.entries()) {
    const wrong = (sentence: string) => source.checker.wrong([...source.path, 'command', position], sentence);
    if (argument.includes('\0')) wrong('must not contain a NUL character');
    // biome-ignore lint/suspicious/noTemplateCurlyInString: this is what people write.
    if (argument.includes('${config}') && !hasConfig) {
      wrong(
        'uses a config file, but `source.config` is missing. Add `source.config`, a map that is written to the file',
      );
    }
    if (/\$\{secrets?\b/i.test(argument)) {
      wrong(
        'must not contain a secret: every user of the machine can read arguments. Put it in `source.env` or `source.config`',
      );
    }
  }
  return command;
}

function checkStreams(source: Section, protocol: Command['protocol']): string[] | null {
  if (!source.has('stream') && !source.has('streams')) return null;
  if (protocol !== 'singer') {
    const name = source.has('streams') ? 'streams' : 'stream';
    source.wrong(name, `has no effect without \`protocol: singer\`. Add this setting, or remove \`${name}\``);
    return null;
  }
  if (!source.has('streams')) {
    const one = source.text('stream', 200);
    return one === undefined ? null : [one];
  }
  if (source.has('stream')) source.wrong('stream', 'cannot be used with `streams`. Remove one of them');
  const names = source.texts('streams', { max: MAX_STREAMS, example: '[users]' });
  return names === undefined ? null : [...new Set(names)];
}

/** Refuses combinations of settings that would lose records silently. */
function checkSingerSettings(root: Section, { command, streams }: Command): void {
  // biome-ignore lint/suspicious/noTemplateCurlyInString: this is what people write.
  const resumes = command.some((argument) => argument.includes('${state}'));
  if (resumes && (!root.has('mode') || root.values.mode === 'replace')) {
    root.wrong(
      'mode',
      'must be upsert or append if the tap gets its state: it then sends only new records, and replace would remove all others',
    );
  }
  const { key } = root.values;
  const several = streams === null || streams.length > 1;
  if (several && Array.isArray(key) && !key.includes('_stream')) {
    root.wrong(
      'key',
      'must include _stream, such as [_stream, id], if the tap sends several streams: otherwise their records could replace each other. Or choose one stream with `source.stream`',
    );
  }
}

function checkConfig(source: Section): Record<string, unknown> | null {
  if (!source.has('config')) return null;
  const { path, values } = source.section('config', null);
  for (const found of leavesOf(values, path)) {
    const { leaf } = found;
    if (typeof leaf === 'string' && hasMalformedSecret(leaf)) {
      source.checker.wrong(found.path, MALFORMED_SECRET);
    } else if (typeof leaf === 'number' && !Number.isFinite(leaf)) {
      source.checker.wrong(found.path, `must be a number that JSON can represent, found ${leaf}`);
    }
  }
  if (JSON.stringify(values).length > MAX_CONFIG_CHARACTERS) {
    source.wrong('config', 'must have at most 262,144 characters as JSON');
  }
  return values;
}

function checkEnv(source: Section): Record<string, string> {
  const env: Record<string, string> = {};
  const map = source.free('env', 'must be a map of names to strings');
  for (const name of Object.keys(map.values)) {
    if (!/^[A-Za-z_][A-Za-z0-9_]*$/.test(name)) {
      map.wrong(name, 'is not a valid environment variable name. Use letters, digits and _');
    } else if (name === 'TMPDIR' || name.startsWith('FLOWHOOK_')) {
      map.wrong(name, 'is set by Flowhook itself. Choose another name');
    } else {
      const asText = (value: unknown) => (typeof value === 'string' ? value : undefined);
      const text = map.read(name, 'must be a string', asText, undefined, () => '. Put it in quotes');
      if (text?.includes('\0')) map.wrong(name, 'must not contain a NUL character');
      else if (text !== undefined && hasMalformedSecret(text)) map.wrong(name, MALFORMED_SECRET);
      else if (text !== undefined) env[name] = text;
    }
  }
  return env;
}

const MALFORMED_SECRET =
  'contains a malformed secret reference. Write $' +
  '{secret.NAME}, where NAME has letters, digits and single underscores';

function hasMalformedSecret(text: string): boolean {
  return /\$\{secrets?\b/i.test(text.replace(secretReferences(), ''));
}
