/** `flowhook data import`: pushes a file into the database, also while a server runs on it, or to a server. */
import { randomBytes } from 'node:crypto';
import { createReadStream } from 'node:fs';
import { stat } from 'node:fs/promises';
import { Readable } from 'node:stream';
import type { Command } from 'commander';
import type { Flowhook } from 'flowhook-client';
import { BrokenOffError } from '../jobs/attempt.ts';
import { PushJobs } from '../jobs/push-job.ts';
import { PUSH_FORMATS, type PushEncoding, type PushFormat } from '../jobs/push-records.ts';
import type { RecordCounts } from '../model/job.ts';
import { MANY_RECORDS, PUSH_DROP_PERCENT } from '../model/staging.ts';
import { MODES, type Mode } from '../model/workflow.ts';
import { silentLogger } from '../observe/log.ts';
import { Ingester } from '../records/ingester.ts';
import { loadSuppression } from '../records/suppress.ts';
import { countWords } from '../std/amounts.ts';
import { createProgressBar } from '../std/progress-bar.ts';
import { openSealer } from '../teams/encryption-key.ts';
import { dataCommand } from './data.ts';
import { NotFoundError, UsageError } from './exit.ts';
import { findWorkflow } from './find.ts';
import { oneOf } from './flag-values.ts';
import { addStoreOptions, withStore } from './open.ts';
import { print } from './output.ts';
import { orRemote, withoutTeam } from './remote.ts';
import { screen, warn } from './say.ts';
import type { Options } from './settings.ts';
import { untilInterrupted } from './until-interrupted.ts';

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
const COMPRESSED: Readonly<Record<string, PushEncoding>> = { gz: 'gzip', zst: 'zstd' };

export function addImport(program: Command): void {
  const command = dataCommand(program)
    .command('import')
    .description('publish the records of a file in a workflow whose source is `push`')
    .argument('<file>', `${Object.keys(ENDINGS).join(', ')}, also .gz or .zst; - for standard input`)
    .requiredOption('--workflow <id>', 'the workflow')
    .option('--team <slug>', 'its team, if several have a workflow with this id')
    .option(
      '--mode <mode>',
      `${MODES.join(', ')}: that of the workflow, or a stricter one (default: that of the workflow)`,
    )
    .option(
      '--allow-drop',
      `publish even if this removes more than ${PUSH_DROP_PERCENT} % of at least ${MANY_RECORDS} records`,
    )
    .option('--format <format>', `${PUSH_FORMATS.join(', ')} (default: by the file extension)`);
  orRemote(addStoreOptions(command), importFile, importFileAt);
}

async function importFile(path: string, options: Options): Promise<void> {
  const form = formOf(path, options.format as string | undefined);
  const mode = modeFrom(options.mode as string | undefined);
  const size = path === '-' ? undefined : await sizeOf(path);
  await withStore(options, { make: false }, async (store, config) => {
    const place = await findWorkflow(store, String(options.workflow), options.team as string | undefined);
    const sealer = await openSealer(config, store);
    const ingester = new Ingester({
      databaseUrl: config.databaseUrl,
      log: silentLogger,
      suppression: (at) => loadSuppression({ store, sealer }, at),
    });
    // A node id of its own: a starting server must not take this job for one that it left behind.
    const nodeId = `cli-${randomBytes(6).toString('hex')}`;
    const pushes = new PushJobs({
      store,
      ingester,
      log: silentLogger,
      observer: {},
      nodeId,
      random: Math.random,
    });
    const input: Readable = path === '-' ? process.stdin : createReadStream(path);
    const bar = createProgressBar({
      screen,
      total: size,
      noun: 'records',
      clock: () => performance.now(),
    });
    // Reading reports a file that cannot be opened; until then an `error` event without a listener would be thrown.
    input.on('error', () => {});
    let read = 0;
    const interrupted = onSignal();
    try {
      const pushed = await pushes.run({
        ...place,
        ...form,
        mode,
        allowDrop: options.allowDrop === true,
        idempotencyKey: null,
        bytes: counted(input, (bytes) => {
          read += bytes;
        }),
        onRecords: (count) => bar.update({ done: read, count }),
        signal: interrupted.signal,
      });
      bar.stop();
      report(place.workflowId, pushed, options);
    } finally {
      bar.stop();
      interrupted.clear();
      input.destroy();
      await ingester.close();
    }
  });
}

async function importFileAt(server: Flowhook, path: string, options: Options): Promise<void> {
  const { format, encoding } = formOf(path, options.format as string | undefined);
  const mode = modeFrom(options.mode as string | undefined);
  if (path !== '-') await sizeOf(path);
  const workflow = withoutTeam(String(options.workflow));
  const input: Readable = path === '-' ? process.stdin : createReadStream(path);
  const interrupted = onSignal();
  try {
    const pushed = await server.workflows.push(
      workflow,
      {
        contentType: CONTENT_TYPES[format],
        contentEncoding: encoding === 'identity' ? undefined : encoding,
        body: Readable.toWeb(input) as ReadableStream<Uint8Array>,
      },
      {
        signal: interrupted.signal,
        ...(mode === undefined ? {} : { mode }),
        ...(options.allowDrop === true ? { allowDrop: true } : {}),
      },
    );
    report(workflow, pushed, options);
  } finally {
    interrupted.clear();
    input.destroy();
  }
}

function report(
  workflow: string,
  pushed: { version: number | null; records: RecordCounts; warning?: string },
  options: Options,
): void {
  const { total, added, changed, removed } = pushed.records;
  if (pushed.warning !== undefined) warn(pushed.warning);
  print(options, pushed, [
    `version ${pushed.version} of ${workflow}: ${countWords(total, 'record')}, ${added} added, ${changed} changed, ${removed} removed`,
  ]);
}

async function* counted(input: Readable, tell: (bytes: number) => void): AsyncGenerator<Uint8Array> {
  for await (const chunk of input) {
    tell((chunk as Buffer).length);
    yield chunk as Buffer;
  }
}

/** A signal ends the import in good order: its job fails at once, not only when its lease has expired. */
function onSignal() {
  return untilInterrupted({
    reason: new BrokenOffError('Interrupted: the published records stay as they are'),
  });
}

async function sizeOf(path: string): Promise<number> {
  const found = await stat(path).catch((cause: NodeJS.ErrnoException) => {
    if (cause.code === 'ENOENT') throw new NotFoundError(`There is no file ${path}`);
    throw cause;
  });
  if (found.isDirectory()) throw new UsageError(`${path} is a directory: name a file in it`);
  return found.size;
}

function formOf(path: string, named: string | undefined): { format: PushFormat; encoding: PushEncoding } {
  const endings = path.toLowerCase().split('.').slice(1);
  const encoding = COMPRESSED[endings.at(-1) ?? ''];
  if (encoding !== undefined) endings.pop();
  const format = named === undefined ? ENDINGS[endings.at(-1) ?? ''] : ENDINGS[named.toLowerCase()];
  if (format !== undefined) return { format, encoding: encoding ?? 'identity' };
  const advice = `Say it with --format: ${PUSH_FORMATS.join(', ')}`;
  if (named !== undefined) throw new UsageError(`There is no format "${named}". ${advice}`);
  if (path === '-') throw new UsageError(`Standard input does not say its format. ${advice}`);
  throw new UsageError(`The name ${path} does not say its format. ${advice}`);
}

function modeFrom(named: string | undefined): Mode | undefined {
  return named === undefined ? undefined : oneOf('--mode', named, MODES);
}
