/** `flowhook data erase|export`: erases a person from all data of a team, or exports all data about a person. */
import { rm } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import type { Config } from '../../config/config.ts';
import {
  type ErasureReport,
  type ErasureRequest,
  erase,
  type Found,
  refuseNoAddress,
} from '../../records/erase.ts';
import { countWords } from '../../std/amounts.ts';
import { openSealer } from '../../teams/encryption-key.ts';
import type { Command } from '../command.ts';
import { UsageError } from '../exit.ts';
import { databaseFile } from '../open.ts';
import type { Options } from '../options.ts';
import { findTeams, type Local, onTarget, onWorkflow, type Target } from '../target.ts';
import { addYes, confirm, print, say, toOutput } from '../terminal.ts';

export function addErase(data: Command): void {
  const erasing = data
    .command('erase')
    .description('erase a person from records, old versions, events, delivery logs and errors')
    .withExamples('data erase --team acme --email ada@example.com --dry-run')
    .option('--team <slug>', 'team that holds the data (on a server: the team of the API key)')
    .option('--email <address>', 'email address of the person, case-insensitive')
    .option('--id <id>', 'id of a record, in every workflow unless --workflow is set')
    .option('--workflow <id>', 'erase only from this workflow (required on a server)')
    .option('--dry-run', 'only report what would be erased')
    .option(
      '--suppress',
      'drop the person from future runs; only a keyed hash of the address or id is stored',
    )
    .option('--rewrite', 'if traces are left, rewrite the database, even a large one; writes wait meanwhile');
  onTarget(addYes(erasing), eraseData, {
    check: (options) => void personFrom(options),
    checkLocal: refuseNoTeam,
  });

  const exporting = data
    .command('export')
    .description('print all data about a person, one JSON object per line')
    .withExamples('data export --email ada@example.com > ada.ndjson')
    .requiredOption('--email <address>', 'email address of the person, case-insensitive')
    .option('--team <slug>', 'only data of this team (on a server: the team of the API key)');
  onTarget(exporting, exportData, { check: ({ email }) => refuseNoAddress(String(email)) });
}

/**
 * On a server, `data erase` erases from one workflow. On a database, it erases from all workflows of a team by default,
 * and can remove traces from the database file.
 */
function eraseData(target: Target, options: Options): Promise<void> {
  const { local } = target;
  return local === undefined ? eraseAt(target, options) : eraseHere(local, options);
}

async function eraseHere({ store, config }: Local, options: Options): Promise<void> {
  const { workflow } = options as Record<string, string | undefined>;
  const { email, id } = personFrom(options);
  const [team] = await findTeams(store, options.team);
  const deps = {
    store,
    sealer: await openSealer(config, store),
    directories: directoriesOf(config),
    // Deleting the response cache is safe while a server is running. The server recreates missing files. If the server
    // is still writing a file, it deletes the file as soon as the file is complete.
    forget: () => rm(join(config.dataDirectory, 'representations'), { recursive: true, force: true }),
  };
  const request: ErasureRequest = {
    teamId: team?.id ?? '',
    workflowId: workflow ?? null,
    email: email ?? null,
    id: id ?? null,
    dryRun: options.dryRun === true,
    suppress: options.suppress === true,
    rewrite: options.rewrite === true,
  };
  const slug = String(options.team);
  await ask(options, async () => ({ team: slug, ...(await erase(deps, { ...request, dryRun: true })) }));
  printReport(await erase(deps, request), options);
}

function refuseNoTeam(options: Options): void {
  if (options.team === undefined) {
    throw new UsageError(
      '--team is missing: name the team that holds the data. To list teams, run `flowhook teams list`',
    );
  }
}

async function eraseAt(target: Target, options: Options): Promise<void> {
  const { email, id } = personFrom(options);
  if (options.workflow === undefined) {
    throw new UsageError('A server erases from one workflow at a time. Name it with --workflow');
  }
  if (options.rewrite === true) {
    throw new UsageError(
      '--rewrite works only on a database. Run the command on the machine with the database, and name the database with --data or --database',
    );
  }
  const person = email === undefined ? { id: String(id) } : { email };
  await onWorkflow(target, String(options.workflow), async ({ client, slug }, workflow) => {
    await ask(options, async () => {
      const found = await client.workflows.erase(workflow, { ...person, dryRun: true });
      return { team: await slug(), ...found };
    });
    const report = await client.workflows.erase(workflow, {
      ...person,
      dryRun: options.dryRun === true,
      suppress: options.suppress === true,
    });
    const { backups, ...rest } = report;
    // The report of a server has only the number of backups, not a list of them.
    printReport({ ...rest, backups: backups === 0 ? [] : [`${backups} on the server`] }, options, report);
  });
}

/**
 * Shows how much a dry run has found, and asks for confirmation. If the dry run has found nothing, no question is
 * asked.
 *
 * @param trial performs the dry run, and returns its findings and the slug of the team
 * @throws UsageError unless the user confirms
 */
async function ask(
  options: Options,
  trial: () => Promise<{ team: string; found: readonly FoundPlace[] }>,
): Promise<void> {
  if (options.dryRun === true || options.yes === true) return;
  const { team, found } = await trial();
  if (found.length === 0) return;
  const sum = (places: readonly FoundPlace[]) => places.reduce((all, { count }) => all + count, 0);
  const records = found.filter(({ place }) => place === 'record');
  const rows = sum(records);
  const texts = sum(found) - rows;
  const workflows = new Set(records.map(({ workflowId }) => workflowId)).size;
  const what = [
    ...(rows === 0
      ? []
      : [
          `${countWords(rows, 'stored record')} in ${countWords(workflows, 'workflow')} (old versions included)`,
        ]),
    ...(texts === 0 ? [] : [`${countWords(texts, 'text')} in events, deliveries, logs and profiles`]),
  ];
  await confirm(options, {
    what: `"${options.email ?? options.id}" will be permanently erased from the team "${team}": ${what.join(', ')}`,
    otherwise: 'nothing was erased',
  });
}

/** @throws UsageError unless exactly one of the flags --email and --id is set */
function personFrom(options: Options): { email: string | undefined; id: string | undefined } {
  const { email, id } = options as Record<string, string | undefined>;
  if ((email === undefined) === (id === undefined)) {
    throw new UsageError('Name the person to erase with either --email or --id');
  }
  return { email, id };
}

/** The parts of a report that are printed, whether the report comes from a database or a server. */
type Report = Omit<ErasureReport, 'found' | 'left'> & Record<'found' | 'left', readonly FoundPlace[]>;
type FoundPlace = Omit<Found, 'place'> & { place: string };

/** @param whole the value for `--json` */
function printReport(report: Report, options: Options, whole: unknown = report): void {
  print(options, whole, [...linesOf(report.found, ''), ...linesOf(report.left, ' (not erased)')]);
  for (const sentence of sentencesOf(report)) say(sentence);
  if (report.disk !== null && !isSettled(report.disk)) process.exitCode = 1;
}

/** Prints entries as unparsed JSON, because parsing the JSON could change its numbers. */
async function exportData({ teams }: Target, options: Options): Promise<void> {
  let lines = 0;
  async function* output(): AsyncGenerator<Uint8Array> {
    for (const { client, slug } of teams) {
      const team = JSON.stringify(await slug());
      for await (const text of client.exportPerson(String(options.email))) {
        yield Buffer.from(`{"team":${team},${text.slice(1)}\n`);
        lines += 1;
      }
    }
  }
  await toOutput(output());
  say(`${lines} ${lines === 1 ? 'entry' : 'entries'} found`);
}

/** Returns the directories to search for copies of the database. */
function directoriesOf(config: Config): string[] {
  const file = databaseFile(config);
  const own = [config.dataDirectory, config.backupDirectory];
  return file === undefined ? own : [...own, dirname(file)];
}

/** Whether the write-ahead log and the free space of the database file contain no more traces of the erased data. */
function isSettled({ logEmptied, rewritten, tracesLeft }: NonNullable<ErasureReport['disk']>): boolean {
  return logEmptied !== false && (rewritten || tracesLeft !== true);
}

function linesOf(found: readonly FoundPlace[], remark: string): string[] {
  return found.map(({ workflowId, place, count }) => `${count}\t${place}\t${workflowId ?? '-'}${remark}`);
}

function sentencesOf({ dryRun, found, left, suppressed, disk, backups }: Report): string[] {
  const sentences = [
    found.length === 0
      ? 'Nothing was found'
      : dryRun
        ? 'This would be erased. Nothing was changed'
        : 'Erased',
  ];
  if (left.length > 0) {
    sentences.push(
      "Other people's records or workflow definitions still mention the person. Change them at their source",
    );
  }
  if (suppressed) sentences.push('Future runs leave out records of the person');
  if (disk?.logEmptied === false) {
    sentences.push(
      'The write-ahead log could not be emptied, because other processes were using the database. Run the ' +
        'command again',
    );
  }
  if (disk?.tracesLeft === null) {
    sentences.push(
      disk.rewritten
        ? 'The tables were rewritten without what was erased'
        : 'Deleted bytes remain in the free space of the tables until PostgreSQL reuses it. To rewrite the tables ' +
            'now, run the command again with --rewrite: every access to a table waits while it is rewritten, and a ' +
            'table that cannot be locked within 2 s keeps its traces',
    );
  }
  if (disk?.logEmptied === null) {
    sentences.push(
      'PostgreSQL keeps copies in its write-ahead log and archive, on replicas and in backups until they are ' +
        'recycled or deleted. This command cannot remove them',
    );
  }
  if (disk?.tracesLeft === true) {
    sentences.push(
      disk.rewritten
        ? 'The database file still contains the address or id: in other teams or workflows, or in entries that were not erased'
        : 'The database file still contains the address or id: in other data, or in unused pages. To remove it from ' +
            'unused pages, run the command again with --rewrite',
    );
  }
  if (backups.length > 0) {
    sentences.push(
      `These older copies of the database may still contain data of the person. If they do, delete them: ` +
        `${backups.join(', ')}`,
    );
  }
  return sentences;
}
