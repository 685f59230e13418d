/** `flowhook data get|changes|versions`: reads records from the database, or from a server. */
import type { Command } from 'commander';
import { openSpan, readChanges } from '../records/changes.ts';
import { FORMATS, formatter } from '../records/formats.ts';
import { openVersion, readWhole } from '../records/read.ts';
import { toIso } from '../std/clock.ts';
import { formatFrom, versionFrom, versionLine } from './data-flags.ts';
import { findWorkflow } from './find.ts';
import { addStoreOptions, withStore } from './open.ts';
import { print, toOutput } from './output.ts';
import { orRemote } from './remote.ts';
import { changesAt, recordsAt, versionsAt } from './remote-data.ts';
import type { Options } from './settings.ts';

/** More versions than are ever kept. */
const MAX_VERSIONS = 1_000;

/** The command `data`, to which several files add. */
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
    .description('print the records of a workflow, one JSON object per line (with --json: one array)')
    .argument('<workflow>', 'its id')
    .option('--team <slug>', 'its team, if several have a workflow with this id')
    .option('--format <format>', `${FORMATS.join(', ')} (default: ndjson)`)
    .option('--at <version>', 'an older version (default: the newest)');
  orRemote(addStoreOptions(get), getRecords, recordsAt);

  const changes = data
    .command('changes')
    .description('print how records have changed, one JSON object per line (with --json: one array)')
    .argument('<workflow>', 'its id')
    .requiredOption('--since <version>', 'changes after this version')
    .option('--until <version>', 'changes up to this version (default: the newest)')
    .option('--team <slug>', 'its team, if several have a workflow with this id');
  orRemote(addStoreOptions(changes), getChanges, changesAt);

  const versions = data
    .command('versions')
    .description('list the versions that can be read, newest first')
    .argument('<workflow>', 'its id')
    .option('--team <slug>', 'its team, if several have a workflow with this id');
  orRemote(addStoreOptions(versions), listVersions, versionsAt);
}

async function getRecords(id: string, options: Options): Promise<void> {
  const format = formatFrom(options);
  const at = versionFrom(options.at, '--at');
  await withStore(options, { make: false }, async (store) => {
    const place = await findWorkflow(store, id, options.team as string | undefined);
    const version = await openVersion(store, place, at, 'Leave --at out to read the newest');
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
    print(options, versions, versions.map(versionLine));
  });
}
