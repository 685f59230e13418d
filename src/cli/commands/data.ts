/** `flowhook data get|import`: reads the records of workflows, and publishes records from a file. */
import { createReadStream } from 'node:fs';
import { stat } from 'node:fs/promises';
import { Readable } from 'node:stream';
import { InterruptedError } from '../../jobs/attempt.ts';
import { PUSH_FORMATS, type PushFormat } from '../../jobs/push-records.ts';
import { MANY_RECORDS, PUSH_DROP_PERCENT } from '../../model/quality/judge.ts';
import { MODES, type Mode } from '../../model/workflow.ts';
import { FORMATS, type Format } from '../../records/formats.ts';
import { countWords } from '../../std/amounts.ts';
import { createProgressBar } from '../../std/progress-bar.ts';
import type { Command } from '../command.ts';
import { NotFoundError, UsageError } from '../exit.ts';
import { type Options, oneOf, versionFrom } from '../options.ts';
import { onTarget, onWorkflow, type Target } from '../target.ts';
import { print, screen, toOutput, untilInterrupted, warn } from '../terminal.ts';
import { addErase } from './erase.ts';
import { addHistory } from './history.ts';

/** The format of a file, by its extension. */
const ENDINGS: Readonly<Record<string, PushFormat>> = {
  json: 'json',
  ndjson: 'ndjson',
  jsonl: 'ndjson',
  csv: 'csv',
};
const CONTENT_TYPES: Readonly<Record<PushFormat, string>> = {
  json: 'application/json',
  ndjson: 'application/x-ndjson',
  csv: 'text/csv',
};
const COMPRESSED: Readonly<Record<string, string>> = { gz: 'gzip', zst: 'zstd' };

export function addData(program: Command): void {
  const data = program.command('data').description('import, read, export and erase the records of workflows');
  const addTeam = (to: Command) =>
    to.option('--team <slug>', 'team of the workflow, if several teams have a workflow with this id');
  const command = (name: string, description: string) =>
    addTeam(data.command(name).description(description).argument('<workflow>', 'id of the workflow'));

  const importing = data
    .command('import')
    .description('publish the records of a file in a workflow whose source is `push`')
    .withExamples(
      'data import people.csv --workflow inbox',
      'zcat people.ndjson.gz | flowhook data import - --format ndjson --workflow inbox',
    )
    .argument(
      '<file>',
      `a ${Object.keys(ENDINGS).join(', ')} file, also with .gz or .zst; - reads standard input`,
    )
    .requiredOption('--workflow <id>', 'id of the workflow');
  addTeam(importing)
    .option(
      '--mode <mode>',
      `${MODES.join(', ')}: the mode of the workflow, or one after it in this list (default: the mode of the workflow)`,
    )
    .withValues('--mode', MODES)
    .option(
      '--allow-drop',
      `publish even if this removes more than ${PUSH_DROP_PERCENT}% of ${MANY_RECORDS} or more records`,
    )
    .option('--format <format>', `${PUSH_FORMATS.join(', ')} (default: from the file extension)`)
    .withValues('--format', PUSH_FORMATS);
  onTarget(importing, importFile, {
    check: async (path: string, options) => {
      fileFrom(path, options);
      if (path !== '-') await sizeOf(path);
    },
  });

  const get = command(
    'get',
    'print the records of a workflow, one JSON object per line (with --json: one array)',
  )
    .withExamples('data get people', 'data get people --format csv > people.csv')
    .option('--format <format>', `${FORMATS.join(', ')} (default: ndjson)`)
    .withValues('--format', FORMATS)
    .option('--at <version>', 'version to read (default: the newest)');
  onTarget(get, getRecords, {
    check: (_workflow: string, options) => {
      formatFrom(options);
      versionFrom(options.at, '--at');
    },
  });

  addHistory(command);
  addErase(data);
}

async function getRecords(target: Target, workflow: string, options: Options): Promise<void> {
  const format = formatFrom(options);
  const version = versionFrom(options.at, '--at');
  await onWorkflow(target, workflow, async ({ client }, id) => {
    // The records are not parsed, because parsing could round numbers.
    const { body } = await client.workflows.dataAs(format, id, { version }).catch((error) => {
      error.message = error.message.replace('`version`', '--at');
      throw error;
    });
    if (body !== null) await toOutput(body, format === 'json' ? '\n' : '');
  });
}

async function importFile(target: Target, path: string, options: Options): Promise<void> {
  const { mode, ...form } = fileFrom(path, options);
  const total = path === '-' ? undefined : await sizeOf(path);
  const bar = createProgressBar({ screen, total, noun: 'kB read', clock: () => performance.now() });
  // A signal makes the job of the import fail immediately. Otherwise, the job would fail only when its lease expires.
  const interrupted = untilInterrupted({
    reason: new InterruptedError('Interrupted. The published records were not changed'),
  });
  let done = 0;
  try {
    await onWorkflow(target, String(options.workflow), async ({ client }, id) => {
      const input: Readable = path === '-' ? process.stdin : createReadStream(path);
      // The error from reading the file is reported instead of the receiver's error, which says only that the body is
      // incomplete.
      let unreadable: Error | undefined;
      input.on('error', (error) => {
        unreadable = error;
      });
      async function* counted() {
        for await (const chunk of input) {
          done += (chunk as Buffer).length;
          bar.update({ done, count: Math.round(done / 1_000) });
          yield chunk as Buffer;
        }
      }
      const body = Readable.toWeb(Readable.from(counted(), { objectMode: false }));
      const sent = { ...form, body: body as ReadableStream<Uint8Array> };
      const { signal } = interrupted;
      const { message: _, ...pushed } = await client.workflows
        .push(id, sent, {
          signal,
          ...(mode && { mode }),
          ...(options.allowDrop === true && { allowDrop: true }),
        })
        .catch((error) => {
          throw unreadable ?? error;
        })
        .finally(() => input.destroy());
      bar.stop();
      const { version, records, warning } = pushed;
      if (warning !== undefined) warn(warning);
      print(options, pushed, [
        `version ${version} of ${id}: ${countWords(records.total, 'record')}, ${records.added} added, ` +
          `${records.changed} changed, ${records.removed} removed`,
      ]);
    });
  } finally {
    bar.stop();
    interrupted.clear();
  }
}

async function sizeOf(path: string): Promise<number> {
  const found = await stat(path).catch((cause: NodeJS.ErrnoException) => {
    if (cause.code === 'ENOENT') throw new NotFoundError(`There is no file ${path}`);
    throw cause;
  });
  if (found.isDirectory()) throw new UsageError(`${path} is a directory. Choose a file in it`);
  return found.size;
}

/** Derives the headers and the mode of the import request from the file name and the flags. @throws UsageError */
function fileFrom(path: string, { format: named, mode }: Options) {
  const endings = path.toLowerCase().split('.').slice(1);
  const contentEncoding = COMPRESSED[endings.at(-1) ?? ''];
  if (contentEncoding !== undefined) endings.pop();
  const format = ENDINGS[named === undefined ? (endings.at(-1) ?? '') : String(named).toLowerCase()];
  if (format === undefined) {
    const what =
      named !== undefined
        ? `There is no format "${named}"`
        : path === '-'
          ? 'Standard input has no file extension to determine its format'
          : `The extension of ${path} does not determine its format`;
    throw new UsageError(`${what}. Set it with --format: ${PUSH_FORMATS.join(', ')}`);
  }
  return {
    contentType: CONTENT_TYPES[format],
    contentEncoding,
    mode: mode === undefined ? undefined : oneOf<Mode>('--mode', String(mode), MODES),
  };
}

/** @throws UsageError */
function formatFrom({ format, json }: Options): Format {
  return oneOf('--format', String(format ?? (json === true ? 'json' : 'ndjson')), FORMATS);
}
