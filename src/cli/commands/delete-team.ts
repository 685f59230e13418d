/** `flowhook teams delete`: exports the data of a team, retires the team, and deletes its rows. */
import { existsSync } from 'node:fs';
import { rm, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import type { Config } from '../../config/config.ts';
import type { Team } from '../../model/team.ts';
import type { WorkflowRef } from '../../model/workflow.ts';
import { formatter } from '../../records/formats.ts';
import { openVersion, readWhole } from '../../records/read.ts';
import { shownWebhook } from '../../resources/webhook.ts';
import { countWords, grouped, listed } from '../../std/amounts.ts';
import { toIso } from '../../std/clock.ts';
import { makeDirectory } from '../../std/make-directory.ts';
import { createLiveLine } from '../../std/progress-bar.ts';
import { everyRow } from '../../store/page.ts';
import type { Store } from '../../store/store.ts';
import { openSealer } from '../../teams/encryption-key.ts';
import type { WebhookDeps } from '../../webhooks/sealed.ts';
import type { Command } from '../command.ts';
import { ConflictError, UsageError } from '../exit.ts';
import { addStoreOptions, withStore } from '../open.ts';
import type { Options } from '../options.ts';
import { findTeams } from '../target.ts';
import { addYes, confirm, print, say, screen } from '../terminal.ts';

/** The maximum number of rows that a single transaction deletes. */
const ROWS_AT_ONCE = 500;
/** Canceled runs have this long to end. Then their jobs are deleted, which also ends the runs. */
const END_MS = 15_000;
const LOOK_MS = 100;
const CANCELED_BY = 'The team was deleted at the command line';

export function addDeleteTeam(teams: Command): void {
  const command = teams
    .command('delete')
    .description('permanently delete a team with all its data, after exporting them')
    .withExamples('teams delete acme', 'teams delete acme --yes --export /backups/acme')
    .argument('<slug>', 'slug of the team, as `flowhook teams list` shows it')
    .option('--export <directory>', 'new directory for the export (default: the slug and the time)')
    .option('--no-export', 'skip the export')
    .option('--force', 'cancel running jobs');
  addStoreOptions(addYes(command)).action((slug: string, options: Options) =>
    withStore(options, { make: false, own: true }, (store, config, owned) =>
      deleteTeam(store, slug, { config, owned, options }),
    ),
  );
}

async function deleteTeam(
  store: Store,
  slug: string,
  { config, owned, options }: { config: Config; owned: boolean; options: Options },
): Promise<void> {
  const retired = await Array.fromAsync(everyRow(store.teams.retired, {}));
  const interrupted = retired.filter((team) => team.slug === slug);
  if (interrupted.length > 0) say(`Continuing an interrupted deletion of the team "${slug}"`);
  for (const { id } of interrupted) await deleteRows(store, id);
  if (interrupted.length > 0 && (await store.teams.bySlug({ slug })) === undefined) {
    await leaveNoTraces(store, config);
    return print(options, { slug, deleted: true, exported: null }, [`deleted ${slug}`]);
  }
  const [team] = (await findTeams(store, slug)) as [Team];
  const teamId = team.id;
  const running = await store.jobs.list({ teamId, states: ['running'], limit: ROWS_AT_ONCE });
  if (options.force !== true) {
    const ids = running.map(({ id }) => id);
    rejectRunning(slug, ids);
  }
  await confirm(options, {
    what: `The team "${slug}" will be permanently deleted with all its data: ${await holdings(store, teamId)}`,
    otherwise: 'nothing was deleted',
    name: slug,
  });

  const exported =
    options.export === false ? null : String(options.export ?? `${slug}-${stamp(store.now())}`);
  if (exported !== null) {
    await exportTeam({ store, sealer: await openSealer(config, store) }, team, exported);
    say(`Exported to ${exported}`);
  }
  const ended = await store.teams.retire({ teamId, force: options.force === true });
  if (ended?.outcome === 'running') rejectRunning(slug, ended.running);
  await cancel(store, { teamId, ids: ended?.running ?? [], owned });
  await deleteRows(store, teamId);
  await leaveNoTraces(store, config);
  print(options, { id: teamId, slug, deleted: true, exported }, [`deleted ${slug}`]);
  say(
    `Workflow files are not deleted. As long as there are files in ${slug}/, the next \`flowhook apply\` or server ` +
      'start creates the team again',
  );
  if (slug === 'default') say('The next `flowhook serve` creates an empty team "default"');
}

/** @throws ConflictError */
function rejectRunning(slug: string, ids: readonly string[]): void {
  if (ids.length === 0) return;
  throw new ConflictError(
    `Nothing was deleted, because ${countWords(ids.length, 'job')} of "${slug}" ${ids.length === 1 ? 'is' : 'are'} ` +
      `running: ${listed(ids)}. Wait until no job is running, or use --force to cancel the running jobs and delete the team`,
  );
}

async function holdings(store: Store, teamId: string): Promise<string> {
  const { workflows, webhooks, keys } = await store.teams.holdings({ teamId });
  return [countWords(workflows, 'workflow'), countWords(webhooks, 'webhook'), countWords(keys, 'key')].join(
    ', ',
  );
}

/** Cancels the jobs. If a server is running, waits until the server has ended them. */
async function cancel(
  store: Store,
  { teamId, ids, owned }: { teamId: string; ids: readonly string[]; owned: boolean },
): Promise<void> {
  for (const id of ids) await store.jobs.cancel({ teamId, id, by: CANCELED_BY });
  if (owned || ids.length === 0) return;
  say(`Canceling ${countWords(ids.length, 'job')}`);
  const until = performance.now() + END_MS;
  for (const id of ids) {
    while ((await store.jobs.get({ teamId, id }))?.state === 'running' && performance.now() < until) {
      await pause(LOOK_MS);
    }
  }
}

/**
 * Deletes the rows of a team in steps. Pauses after each step for as long as the step took, so that other programs can
 * use the database.
 */
async function deleteRows(store: Store, teamId: string): Promise<void> {
  const line = createLiveLine(screen, () => performance.now());
  try {
    for (let steps = 1; ; steps += 1) {
      const startMs = performance.now();
      const { done } = await store.teams.delete({ teamId, limit: ROWS_AT_ONCE });
      if (done) return;
      line.show(() => `up to ${grouped(steps * ROWS_AT_ONCE)} rows deleted`);
      await pause(performance.now() - startMs);
    }
  } finally {
    line.stop();
  }
}

/** Removes copies of the deleted rows from the write-ahead log and the response cache. */
async function leaveNoTraces(store: Store, config: Config): Promise<void> {
  await rm(join(config.dataDirectory, 'representations'), { recursive: true, force: true });
  const { logEmptied } = await store.erasure.scrub({ traces: [], rewriteBytes: 0 });
  if (logEmptied === false) {
    say(
      'The write-ahead log still contains deleted rows, because other processes were using the database. ' +
        'They will be overwritten',
    );
  }
}

function stamp(nowMs: number): string {
  return new Date(nowMs).toISOString().slice(0, 19).replaceAll(':', '-');
}

/** The number of events per read. */
const EVENTS_AT_ONCE = 250;

/**
 * Writes the data of a team into a new directory that only its owner can read: `team.json`, `workflows/<id>.json`
 * (definitions), `data/<id>.ndjson` (the newest records), `webhooks.json` (without secrets and header values) and
 * `events.ndjson`.
 *
 * @throws UsageError when the directory already exists
 */
async function exportTeam(
  deps: Pick<WebhookDeps, 'store' | 'sealer'>,
  team: Team,
  directory: string,
): Promise<void> {
  if (existsSync(directory)) {
    throw new UsageError(`${directory} already exists. Choose another directory with --export`);
  }
  const { store } = deps;
  const { id: teamId, slug, createdAt } = team;
  const write = async (name: string, content: string | AsyncIterable<Uint8Array>) => {
    const path = join(directory, name);
    makeDirectory(dirname(path));
    await writeFile(path, content, { flag: 'wx', mode: 0o600 });
  };
  await write('team.json', pretty({ id: teamId, slug, createdAt: toIso(createdAt) }));
  for await (const workflow of everyRow(store.workflows.list, { teamId, archived: true })) {
    const { id, definition, archivedAt } = workflow;
    await write(`workflows/${id}.json`, pretty(definition));
    const place = { teamId, workflowId: id };
    await write(
      `data/${id}.ndjson`,
      archivedAt === null ? recordsOf(store, place) : archivedOf(store, place),
    );
  }
  const webhooks = [];
  for await (const webhook of everyRow(store.webhooks.list, { teamId }))
    webhooks.push(await shownWebhook(deps, webhook));
  await write('webhooks.json', pretty(webhooks));
  await write('events.ndjson', eventsOf(store, teamId));
}

async function* recordsOf(store: Store, place: WorkflowRef): AsyncGenerator<Uint8Array> {
  const version = await openVersion(store, place);
  yield* readWhole(
    store,
    place,
    version,
    formatter({ format: 'ndjson', columns: version.fields, only: null }),
  );
}

/**
 * Yields the current records of an archived workflow. Because an archived workflow has no readable version, this
 * function scans all its records and skips those that a run has removed.
 */
async function* archivedOf(store: Store, place: WorkflowRef): AsyncGenerator<Uint8Array> {
  for (let after: string | null = null; ; ) {
    // Every text contains the empty string.
    const look = { ...place, needles: [''], ids: [], after };
    const { rows, next }: Awaited<ReturnType<Store['erasure']['scanRecords']>> =
      await store.erasure.scanRecords(look);
    for (const { removedIn, body } of rows) if (removedIn === null) yield Buffer.from(`${body}\n`);
    if (next === null) return;
    after = next;
  }
}

async function* eventsOf(store: Store, teamId: string): AsyncGenerator<Uint8Array> {
  for (let afterSequence = 0; ; ) {
    const events = await store.events.list({ teamId, afterSequence, limit: EVENTS_AT_ONCE });
    for (const { body } of events) yield Buffer.from(`${body}\n`);
    const last = events.at(-1);
    if (last === undefined) return;
    afterSequence = last.sequence;
  }
}

function pretty(value: unknown): string {
  return `${JSON.stringify(value, null, 2)}\n`;
}
