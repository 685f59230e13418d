/** `flowhook data get|changes|versions`: reads records from the database itself, with or without a server. */
import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import type { Command } from 'commander';
import { openSpan, readChanges } from '../records/changes.ts';
import { FORMATS, type Format, formatter } from '../records/formats.ts';
import { openVersion, readWhole } from '../records/read.ts';
import { toIso } from '../std/clock.ts';
import { UsageError } from './exit.ts';
import { findWorkflow } from './find.ts';
import { addStoreOptions, print, withStore } from './open.ts';
import type { Options } from './settings.ts';

/** Versions that are listed at most: more than are ever kept. */
const MAX_VERSIONS = 1_000;

/** The command `data`, which several files add to. */
export function dataCommand(program: Command): Command {
  return (
    program.commands.find((command) => command.name() === 'data') ??
    program.command('data').description('the records of workflows: import, read, export, erase')
  );
}

export function addData(program: Command): void {
  const data = dataCommand(program);

  const get = data
    .command('get')
    .description('print the records of a workflow, one JSON object a line (with --json: one array)')
    .argument('<workflow>', 'its id')
    .option('--team <slug>', 'its team, when several have a workflow of this id')
    .option('--format <format>', `${FORMATS.join(', ')} (default: ndjson)`)
    .option('--at <version>', 'an older version (default: the newest)');
  addStoreOptions(get).action(getRecords);

  const changes = data
    .command('changes')
    .description('print what became of records, one JSON object a line (with --json: one array)')
    .argument('<workflow>', 'its id')
    .requiredOption('--since <version>', 'what changed after this version')
    .option('--until <version>', 'up to this one (default: the newest)')
    .option('--team <slug>', 'its team, when several have a workflow of this id');
  addStoreOptions(changes).action(getChanges);

  const versions = data
    .command('versions')
    .description('list the versions that can be read, newest first')
    .argument('<workflow>', 'its id')
    .option('--team <slug>', 'its team, when several have a workflow of this id');
  addStoreOptions(versions).action(listVersions);
}

async function getRecords(id: string, options: Options): Promise<void> {
  const format = formatFrom(options);
  const at = versionFrom(options.at, '--at');
  await withStore(options, { make: false }, async (store) => {
    const place = await findWorkflow(store, id, options.team as string | undefined);
    const version = await openVersion(store, place, at);
    const written = formatter({ format, columns: version.fields, only: null });
    await toOutput(readWhole(store, place, version, written), format === 'json' ? '\n' : '');
  });
}

async function getChanges(id: string, options: Options): Promise<void> {
  const since = versionFrom(options.since, '--since') ?? 0;
  const until = versionFrom(options.until, '--until');
  const format = options.json === true ? 'json' : 'ndjson';
  await withStore(options, { make: false }, async (store) => {
    const place = await findWorkflow(store, id, options.team as string | undefined);
    const span = await openSpan(store, place, { since, until });
    await toOutput(readChanges(store, place, span, format), format === 'json' ? '\n' : '');
  });
}

async function listVersions(id: string, options: Options): Promise<void> {
  await withStore(options, { make: false }, async (store) => {
    const place = await findWorkflow(store, id, options.team as string | undefined);
    const versions = (await store.records.versions({ ...place, limit: MAX_VERSIONS })).map(
      ({ number, jobId, publishedAt, records }) => ({
        version: number,
        publishedAt: toIso(publishedAt),
        jobId,
        records,
      }),
    );
    const lines = versions.map(({ version, publishedAt, jobId, records }) => {
      const { total, added, changed, removed } = records;
      return `${version}  ${publishedAt}  ${jobId}  ${total} records: +${added} ~${changed} -${removed}`;
    });
    print(options, versions, lines);
  });
}

/** Writes to standard output as fast as it is read there; a reader that has enough (`head`) is no mistake. */
export async function toOutput(bytes: AsyncIterable<Uint8Array>, last = ''): Promise<void> {
  try {
    await pipeline(Readable.from(bytes, { objectMode: false }), process.stdout, { end: false });
    if (last !== '') process.stdout.write(last);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EPIPE') throw error;
  }
}

function formatFrom(options: Options): Format {
  const fallback = options.json === true ? 'json' : 'ndjson';
  const format = FORMATS.find((known) => known === (options.format ?? fallback));
  if (format === undefined) {
    throw new UsageError(`--format must be ${FORMATS.join(', ')}, found "${options.format}"`);
  }
  return format;
}

function versionFrom(value: unknown, flag: string): number | undefined {
  if (value === undefined) return undefined;
  if (/^\d{1,15}$/.test(String(value))) return Number(value);
  throw new UsageError(`${flag} must be the number of a version, found "${value}"`);
}
