/** `flowhook data erase|export`: erases a person from everything that a team holds, or prints what it holds. */
import { rm } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import type { Command } from 'commander';
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
import { UsageError } from '../exit.ts';
import { databaseFile } from '../open.ts';
import type { Options } from '../options.ts';
import { findTeams, type Local, onTarget, onWorkflow, type Target } from '../target.ts';
import { addYes, confirm, print, say, toOutput } from '../terminal.ts';

export function addErase(data: Command): void {
  const erasing = data
    .command('erase')
    .description('erase a person from records, old versions, events, delivery logs and errors')
    .option('--team <slug>', 'the team that holds the data (a server uses the team of the key)')
    .option('--email <address>', 'the address of the person, case-insensitive')
    .option('--id <id>', 'the id of a record, in every workflow unless --workflow is given')
    .option('--workflow <id>', 'only from one workflow (a server erases from one at a time)')
    .option('--dry-run', 'only report what would be erased')
    .option('--suppress', 'keep the person out of later runs, by a keyed hash')
    .option(
      '--rewrite',
      'if traces are left, rewrite the database however large it is; writes wait meanwhile',
    );
  onTarget(addYes(erasing), eraseData, {
    check: (options) => void personFrom(options),
    checkLocal: refuseNoTeam,
  });

  const exporting = data
    .command('export')
    .description('print everything that is held about a person, one JSON object per line')
    .requiredOption('--email <address>', 'the address of the person, case-insensitive')
    .option('--team <slug>', 'only what one team holds (a server uses the team of the key)');
  onTarget(exporting, exportData, { check: ({ email }) => refuseNoAddress(String(email)) });
}

/** A server erases from one workflow; whoever has the database from all of a team, and rewrites what is left. */
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
    // A running server makes missing files again, and removes those that it is making when they are done.
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
  tell(await erase(deps, request), options);
}

function refuseNoTeam(options: Options): void {
  if (options.team === undefined) {
    throw new UsageError(
      '--team is missing: the team that holds the data (`flowhook teams list` shows them)',
    );
  }
}

async function eraseAt(target: Target, options: Options): Promise<void> {
  const { email, id } = personFrom(options);
  if (options.workflow === undefined) {
    throw new UsageError('A server erases from one workflow at a time: say which with --workflow');
  }
  if (options.rewrite === true) {
    throw new UsageError(
      '--rewrite is for whoever has the database: run it there, with --data or --database',
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
    // A server says how many there are, not where.
    tell({ ...rest, backups: backups === 0 ? [] : [`${backups} on the server`] }, options, report);
  });
}

/**
 * Asks before anything is erased, with how much a trial has found. If that is nothing, nobody is asked.
 *
 * @param trial tries it, and returns what it found in which team (its slug)
 * @throws UsageError unless the user agrees
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
      : [`${countWords(rows, 'stored state')} of records in ${countWords(workflows, 'workflow')}`]),
    ...(texts === 0 ? [] : [`${countWords(texts, 'text')} in events, deliveries and logs`]),
  ];
  await confirm(options, {
    what: `"${options.email ?? options.id}" will be erased for good from the team "${team}": ${what.join(', ')}`,
    otherwise: 'nothing was erased',
  });
}

/** @throws UsageError unless the person is named in one way */
function personFrom(options: Options): { email: string | undefined; id: string | undefined } {
  const { email, id } = options as Record<string, string | undefined>;
  if ((email === undefined) === (id === undefined)) {
    throw new UsageError('Give either --email or --id: whom to erase');
  }
  return { email, id };
}

/** What is printed of a report, from the database or from a server. */
type Told = Omit<ErasureReport, 'found' | 'left'> & Record<'found' | 'left', readonly FoundPlace[]>;
type FoundPlace = Omit<Found, 'place'> & { place: string };

/** @param whole what `--json` prints, if not the report */
function tell(report: Told, options: Options, whole: unknown = report): void {
  print(options, whole, [...linesOf(report.found, ''), ...linesOf(report.left, ' (stays)')]);
  for (const sentence of sentencesOf(report)) say(sentence);
  if (report.disk !== null && !isSettled(report.disk)) process.exitCode = 1;
}

/** Prints entries as they are: parsing the JSON could change its numbers. */
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

/** Where copies of the database are searched for. */
function directoriesOf(config: Config): string[] {
  const file = databaseFile(config);
  const own = [config.dataDirectory, config.backupDirectory];
  return file === undefined ? own : [...own, dirname(file)];
}

/** Whether nothing more must be done about traces in free space and in the log. */
function isSettled({ logEmptied, rewritten, tracesLeft }: NonNullable<ErasureReport['disk']>): boolean {
  return logEmptied !== false && (rewritten || tracesLeft !== true);
}

function linesOf(found: readonly FoundPlace[], remark: string): string[] {
  return found.map(({ workflowId, place, count }) => `${count}\t${place}\t${workflowId ?? '-'}${remark}`);
}

function sentencesOf({ dryRun, found, left, suppressed, disk, backups }: Told): string[] {
  const sentences = [
    found.length === 0
      ? 'Nothing was found'
      : dryRun
        ? 'This would be erased; nothing was changed'
        : 'Erased',
  ];
  if (left.length > 0) {
    sentences.push(
      'What stays mentions the person in records of others or in definitions: change it at its source',
    );
  }
  if (suppressed) sentences.push('Later runs drop the person');
  if (disk?.logEmptied === false) {
    sentences.push(
      'The write-ahead log could not be emptied, because others were reading or writing. Run this again',
    );
  }
  if (disk?.tracesLeft === null) {
    sentences.push(
      disk.rewritten
        ? 'The tables were rewritten without what was erased'
        : 'Deleted bytes stay in the free space of the tables until PostgreSQL uses it again. Run this again with ' +
            '--rewrite to have the tables rewritten at once: everything waits for each of them meanwhile, and ' +
            'traces stay if a table could not be locked within 2 s',
    );
  }
  if (disk?.logEmptied === null) {
    sentences.push(
      'PostgreSQL keeps copies in its write-ahead log and its archive, on replicas and in backups until those are ' +
        'recycled or deleted: that is not in the hands of this command',
    );
  }
  if (disk?.tracesLeft === true) {
    sentences.push(
      disk.rewritten
        ? 'The address or id still stands in what others hold: other teams, other workflows, or what stays'
        : 'The address or id still stands in the database file: in what others hold, or in parts that are not ' +
            'used any more. Run this again with --rewrite to be sure of those',
    );
  }
  if (backups.length > 0) {
    sentences.push(
      `These copies are older and may still hold the person; delete them if so: ${backups.join(', ')}`,
    );
  }
  return sentences;
}
