/**
 * `flowhook workflows test`: runs the source of a workflow file without publishing, and shows what a job would change.
 */
import { existsSync } from 'node:fs';
import type { Config } from '../../config/config.ts';
import { type LoadedFile, loadWorkflowFile } from '../../definitions/load.ts';
import { teamSecrets } from '../../definitions/secrets.ts';
import { mistakeLine } from '../../definitions/section.ts';
import { type TriedRun, tryRun } from '../../jobs/try-run.ts';
import { findingSentence } from '../../model/quality/judge.ts';
import { type Difference, differenceOf } from '../../model/same-json.ts';
import type { WorkflowRef } from '../../model/workflow.ts';
import { silentLogger } from '../../observe/log.ts';
import { loadSuppression } from '../../records/suppress.ts';
import { bytesWords, countWords, durationWords } from '../../std/amounts.ts';
import { createLiveLine } from '../../std/progress-bar.ts';
import type { Store } from '../../store/store.ts';
import { openSealer } from '../../teams/encryption-key.ts';
import { UsageError } from '../exit.ts';
import { oneLine } from '../job-words.ts';
import { databaseFile, withStore } from '../open.ts';
import { configOf, type Options } from '../options.ts';
import { columns, print, say, screen, untilInterrupted, warn } from '../terminal.ts';

export async function testFile(path: string, options: Options): Promise<void> {
  const interrupted = untilInterrupted();
  try {
    const { signal } = interrupted;
    const loaded = await loadWorkflowFile(path, {
      runAs: configOf(options).runAs,
      log: silentLogger,
      signal,
    });
    if ('mistakes' in loaded) {
      const lines = loaded.mistakes.map((mistake) => mistakeLine({ ...mistake, file: path }));
      throw new UsageError(lines.join('\n'));
    }
    if (loaded.definition.source.type === 'push') {
      throw new UsageError(
        `${path} receives its records by push, so there is nothing to run. To publish a file, run \`flowhook data import\``,
      );
    }
    const file = databaseFile(configOf(options));
    if (file !== undefined && !existsSync(file)) {
      say('There is no database to compare the records with');
      report(await run(loaded, options, signal, undefined), options);
    } else {
      await withStore(options, { make: false }, async (store) =>
        report(await run(loaded, options, signal, store), options),
      );
    }
  } catch (error) {
    throw interrupted.signal.aborted ? new Error('Interrupted before the source was started') : error;
  } finally {
    interrupted.clear();
  }
}

async function run(
  { directory, team, id, definition }: LoadedFile,
  options: Options,
  signal: AbortSignal,
  store: Store | undefined,
): Promise<TriedRun> {
  const config = configOf(options);
  const teamId = (await store?.teams.bySlug({ slug: team }))?.id;
  const isThere = teamId !== undefined && (await store?.workflows.get({ teamId, id })) !== undefined;
  const place = store !== undefined && isThere ? { teamId, workflowId: id } : undefined;
  if (store !== undefined && place === undefined) {
    say(`The workflow ${team}/${id} has not been applied yet, so all its records count as added`);
  }
  const current =
    store === undefined || place === undefined
      ? undefined
      : { store, place, suppression: await suppressionOf(config, store, place) };
  const line = createLiveLine(screen, () => performance.now());
  const words = { copying: 'reading published records', running: 'running', comparing: 'comparing' };
  try {
    return await tryRun({
      workflowsDirectory: directory,
      team,
      workflowId: id,
      definition,
      secrets: await teamSecrets({ directory, team, environment: config.environment }),
      environment: config.environment,
      fetchPolicy: config.allowNetworks,
      runAs: config.runAs,
      current,
      onLog: ({ level, text }) => {
        line.clear();
        warn(`${level.padEnd(5)} ${text}`);
      },
      onProgress: (step, records) => line.show(() => `${words[step]}  ${countWords(records, 'record')}`),
      signal,
    });
  } finally {
    line.stop();
  }
}

async function suppressionOf(config: Config, store: Store, place: WorkflowRef) {
  return loadSuppression({ store, sealer: await openSealer(config, store) }, place);
}

function report(tried: TriedRun, options: Options): void {
  const { outcome, reason, error, counts, changes, ms } = tried;
  const first = (changes?.first ?? []).map((row) =>
    differenceOf({ id: row.id, before: row.before ?? undefined, after: row.after ?? undefined }, row.compare),
  );
  const ended = outcome === 'finished' ? 'A job would succeed' : `A job would fail (${reason}): ${error}`;
  print(options, { ...tried, changes: changes === null ? null : { ...changes, first } }, [
    ...tried.records.map((record) => JSON.stringify(record)),
    ...(counts.emitted > tried.records.length
      ? [`… the first ${tried.records.length} of ${countWords(counts.emitted, 'record')}`]
      : []),
    '',
    ...columns([
      ['records', countsWords(counts)],
      ...tried.invalid.map(({ position, reason: why }) => ['invalid', `record ${position}: ${why}`]),
      ...tried.findings.map((finding) => ['not as expected', findingSentence(finding)]),
      ...tried.unchecked.map((sentence) => ['not checked', sentence]),
      ...(changes === null ? [] : [['would change', changesWords(changes)]]),
      ...first.map((one) => ['', oneLine(differenceWords(one), 160)]),
      ['time', timeWords(ms)],
    ]),
    outcome === 'interrupted' ? 'Interrupted: the source was stopped' : ended,
  ]);
  if (outcome !== 'finished') process.exitCode = reason === 'timeout' ? 7 : 1;
}

function countsWords({ emitted, bytes, duplicates, invalid, suppressed }: TriedRun['counts']): string {
  return [
    `${countWords(emitted, 'record')} in ${bytesWords(bytes)}`,
    ...(invalid === 0 ? [] : [`${invalid} invalid`]),
    ...(duplicates === 0 ? [] : [`${duplicates} with a duplicate id`]),
    ...(suppressed === 0 ? [] : [`${suppressed} of erased people`]),
  ].join(', ');
}

function changesWords({
  since,
  added,
  changed,
  removed,
  unchanged,
}: NonNullable<TriedRun['changes']>): string {
  const against = since === 0 ? 'nothing is published yet' : `compared with version ${since}`;
  return `${added} added, ${changed} changed, ${unchanged} unchanged, ${removed} removed (${against})`;
}

function differenceWords({ type, id, fields }: Difference): string {
  const values = fields.flatMap(({ key, value, previousValue }) => {
    if (key === 'id') return [];
    const [now, before] = [JSON.stringify(value), JSON.stringify(previousValue)];
    return type === 'changed' ? `${key} ${before} → ${now}` : `${key} ${now ?? before}`;
  });
  return `${type} ${id}: ${values.join(', ')}`;
}

function timeWords({ copying, starting, producing, checking, comparing, total }: TriedRun['ms']): string {
  return [
    ...(copying < 1 ? [] : [`${durationWords(copying)} to read the published records`]),
    `${durationWords(starting)} to the first line`,
    `${durationWords(producing)} producing`,
    `${durationWords(checking)} checking`,
    `${durationWords(comparing)} comparing`,
    `${durationWords(total)} total`,
  ].join(', ');
}
