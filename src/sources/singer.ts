/**
 * Reads the messages of a Singer tap: the records of the selected streams, and the state for the next run.
 *
 * - SCHEMA defines the key of a stream, which becomes the id of its records unless the definition has a `key`. Without
 *   a key, records must have an `id`. An `id` that is replaced by another one is kept as `_id`.
 * - RECORD is a record. If the definition selects one stream, the record is kept as it is. Otherwise it gets the name
 *   of its stream in `_stream`, and `<stream>:<key>` as its id.
 * - STATE is the state for the next run. The last one is stored, and only if this run publishes.
 * - ACTIVATE_VERSION reports that records of a stream from earlier runs are gone. Mode `replace` removes them anyway;
 *   `upsert` and `append` keep them and log a warning.
 * - BATCH lists files that contain records. Taps send it only if configured to. It is refused, because otherwise its
 *   records would be lost silently. The specification has no other types; unknown types are ignored.
 */
import { createHash } from 'node:crypto';
import { setImmediate as turn } from 'node:timers/promises';
import type { LogLevel } from '../model/job.ts';
import { InvalidRecordError, idOf } from '../model/record.ts';
import type { Mode, Source } from '../model/workflow.ts';
import { parseAsWritten, parseExactly } from '../std/exact-json.ts';
import type { Child } from './process/child.ts';
import type { Run, RunEnd } from './run.ts';
import { runOf } from './run.ts';

/**
 * Maximum number of characters to parse before yielding to other work. Messages are parsed in the server's main thread.
 */
const SLICE_CHARACTERS = 64 * 1024;
const MAX_STREAMS = 10_000;
const MAX_KEY_FIELDS = 100;
/** Maximum number of records without a key to log. The check of records counts all records without a key. */
const MAX_LOGGED = 10;

interface SingerOptions {
  who: string;
  source: Extract<Source, { type: 'command' }>;
  key: readonly string[];
  mode: Mode;
  onLog(line: { level: LogLevel; text: string }): void;
}

/**
 * Turns the child process of a tap into a run. Its RECORD messages become records, and its last STATE becomes the state
 * of the run.
 */
export function readSinger(child: Child, options: SingerOptions): Run {
  const reader = createReader(options);
  let mistake: string | undefined;

  async function* batches(): AsyncGenerator<string[]> {
    try {
      for await (const batch of child.batches) yield* recordsOf(batch);
    } catch (error) {
      if (!(error instanceof MessageMistake)) throw error;
      // Leaving the loop has already stopped the tap. `end` reports the mistake.
      mistake = error.message;
    }
  }

  async function* recordsOf(messages: readonly string[]): AsyncGenerator<string[]> {
    let records: string[] = [];
    let read = 0;
    for (const message of messages) {
      const record = reader.read(message);
      if (record !== undefined) records.push(record);
      read += message.length;
      if (read < SLICE_CHARACTERS) continue;
      if (records.length > 0) yield records;
      records = [];
      read = 0;
      await turn();
    }
    if (records.length > 0) yield records;
  }

  const run = runOf(child, options.who, () => {
    reader.finish();
    return { ok: true, state: reader.state() };
  });
  return {
    ...run,
    get bytes() {
      return child.bytes();
    },
    batches: batches(),
    end: run.end.then((end): RunEnd => {
      return mistake === undefined ? end : { ok: false, reason: 'output', error: mistake };
    }),
  };
}

/** Thrown for an invalid message, which fails the run. */
class MessageMistake extends Error {}

interface Stream {
  key: readonly string[];
  /** A hash of the schema, to detect changes. The schema itself may be too large to keep. */
  digest: string;
}

function createReader({ source, key, mode, onLog }: SingerOptions) {
  const taken = source.streams === null ? undefined : new Set(source.streams);
  const alone = taken?.size === 1;
  const streams = new Map<string, Stream>();
  const seen = new Set<string>();
  const activated = new Set<string>();
  let state: string | undefined;
  let position = 0;
  let keyless = 0;

  function wrong(why: string): never {
    throw new MessageMistake(`Message ${position} of the tap ${why}`);
  }

  function textOf(message: Record<string, unknown>, field: string): string {
    const value = message[field];
    if (typeof value === 'string' && value !== '') return value;
    wrong(`(${String(message.type)}) has no \`${field}\`, which must be a string`);
  }

  function readSchema(message: Record<string, unknown>): void {
    const name = textOf(message, 'stream');
    const { key_properties: keyProperties = [] } = message;
    if (!isObject(message.schema)) wrong(`(SCHEMA of ${name}) has no \`schema\`, which must be an object`);
    if (
      !Array.isArray(keyProperties) ||
      keyProperties.length > MAX_KEY_FIELDS ||
      keyProperties.some((field) => typeof field !== 'string')
    ) {
      wrong(
        `(SCHEMA of ${name}) has \`key_properties\` that are not a list of at most ${MAX_KEY_FIELDS} names`,
      );
    }
    const text = JSON.stringify([message.schema, keyProperties]);
    const stream = {
      key: keyProperties as string[],
      digest: createHash('sha256').update(text).digest('base64'),
    };
    const before = streams.get(name);
    if (before !== undefined && before.digest !== stream.digest) {
      onLog({
        level: 'info',
        text: `The tap changed the schema of the stream ${name}${keyChange(before, stream)}`,
      });
    }
    if (before === undefined && streams.size >= MAX_STREAMS) wrong(`names more than ${MAX_STREAMS} streams`);
    streams.set(name, stream);
    seen.add(name);
  }

  function readRecord(message: Record<string, unknown>): string | undefined {
    const name = textOf(message, 'stream');
    if (!isObject(message.record)) wrong(`(RECORD of ${name}) has no \`record\`, which must be an object`);
    if (seen.size < MAX_STREAMS) seen.add(name);
    if (taken !== undefined && !taken.has(name)) return undefined;
    const record = alone ? message.record : { ...message.record, _stream: name };
    if (key.length > 0)
      return JSON.stringify(key.includes('id') && key.length === 1 ? record : withOwnId(record));
    return JSON.stringify(withKey(name, record));
  }

  /**
   * Sets the id of a record. If a field of the key is missing, the record gets no id, so that the check of records
   * refuses it.
   */
  function withKey(name: string, record: Record<string, unknown>): Record<string, unknown> {
    const fields = streams.get(name)?.key ?? [];
    if (alone && fields.length === 0) return record;
    try {
      const id = alone ? idOf(record, fields) : `${name}:${idOf(record, fields)}`;
      return { ...withOwnId(record, id), id };
    } catch (error) {
      if (!(error instanceof InvalidRecordError)) throw error;
      if (++keyless <= MAX_LOGGED) {
        onLog({
          level: 'warn',
          text: `Message ${position} of the tap (RECORD of ${name}): ${error.message}`,
        });
      }
      const { id: _, ...rest } = record;
      return rest;
    }
  }

  function activate(message: Record<string, unknown>): void {
    const name = textOf(message, 'stream');
    if (mode === 'replace' || (taken !== undefined && !taken.has(name)) || activated.has(name)) return;
    if (activated.size < MAX_STREAMS) activated.add(name);
    onLog({
      level: 'warn',
      text: `The tap reports that earlier records of the stream ${name} are gone. Mode ${mode} keeps them; mode replace would remove them`,
    });
  }

  return {
    /**
     * Reads one message.
     *
     * @returns the JSON text of the record if the message is a RECORD of a selected stream, and otherwise undefined
     */
    read(text: string): string | undefined {
      position++;
      const message = parse(text);
      if (typeof message === 'string') wrong(`is not valid JSON: ${message}`);
      if (!isObject(message) || typeof message.type !== 'string') {
        wrong(
          'is not a Singer message, which is a JSON object with a `type`. For plain records use `protocol: ndjson`',
        );
      }
      switch (message.type.toUpperCase()) {
        case 'RECORD':
          return readRecord(message);
        case 'SCHEMA':
          return void readSchema(message);
        case 'STATE':
          if (!Object.hasOwn(message, 'value')) wrong('(STATE) has no `value`');
          state = text;
          return undefined;
        case 'ACTIVATE_VERSION':
          return void activate(message);
        case 'BATCH':
          return wrong(
            'is of the type BATCH, which is not supported. Remove `batch_config` from the configuration of the tap',
          );
        default:
          return undefined;
      }
    },
    /** The value of the last STATE, as JSON text with its numbers as they were written. */
    state() {
      if (state === undefined) return undefined;
      return JSON.stringify((parseAsWritten(state) as { value: unknown }).value);
    },
    /** Logs a warning that names the selected streams for which the tap sent nothing. */
    finish(): void {
      const missing = [...(taken ?? [])].filter((name) => !seen.has(name));
      if (missing.length === 0) return;
      const found = seen.size === 0 ? 'none' : [...seen].slice(0, 20).join(', ');
      onLog({
        level: 'warn',
        text: `The tap sent nothing for the streams ${missing.join(', ')}. Streams that it sent: ${found}`,
      });
    },
  };
}

function keyChange(before: Stream, after: Stream): string {
  const [old, now] = [before.key.join(', '), after.key.join(', ')];
  return old === now ? '' : `; its key changed from [${old}] to [${now}], so ids change`;
}

/** Copies the record's own `id` to `_id` if another id replaces it. */
function withOwnId(record: Record<string, unknown>, id?: string): Record<string, unknown> {
  if (!Object.hasOwn(record, 'id') || Object.hasOwn(record, '_id') || String(record.id) === id) return record;
  return { ...record, _id: record.id };
}

function parse(text: string): unknown {
  try {
    return parseExactly(text);
  } catch (error) {
    return (error as Error).message;
  }
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
