/** `flowhook workflows preview`: shows what the paths of an HTTP source find, without a server or a job. */
import { existsSync } from 'node:fs';
import type { Command } from 'commander';
import { VERSION } from '../config/version.ts';
import { loadWorkflowFile } from '../definitions/load.ts';
import { teamSecrets } from '../definitions/secrets.ts';
import type { HttpSource } from '../model/http-source.ts';
import { silentLogger } from '../observe/log.ts';
import type { Preview } from '../sources/http/preview.ts';
import { fillSecrets } from '../sources/secrets.ts';
import { countWords, durationWords } from '../std/amounts.ts';
import { NotFoundError, UsageError } from './exit.ts';
import { oneLine } from './job-words.ts';
import { print } from './output.ts';
import { warn } from './say.ts';
import { addSettings, configOf, type Options } from './settings.ts';
import { addSourceFlags, sourceOfFlags } from './source-flags.ts';
import { columns } from './table.ts';
import { untilInterrupted } from './until-interrupted.ts';

const WIDEST = 32;

export function addPreview(workflows: Command): void {
  const command = workflows
    .command('preview')
    .description('try the paths of an http source on its first page, or on a saved response')
    .argument('[file]', '<team>/<id>.yaml; or describe the source with flags')
    .option('--from <file>', 'a saved response: no request is sent')
    .option('--pages <count>', 'how many pages of each URL to read', '1')
    .option('--json', 'print JSON');
  addSourceFlags(command);
  addSettings(command, ['allowNetworks']);
  command.action(preview);
}

async function preview(path: string | undefined, options: Options): Promise<void> {
  const interrupted = untilInterrupted();
  try {
    const { signal } = interrupted;
    const from = options.from as string | undefined;
    if (from !== undefined && !existsSync(from)) throw new NotFoundError(`There is no file ${from}`);
    const pages = Number(options.pages);
    if (!Number.isInteger(pages) || pages < 1) throw new UsageError('--pages must be a whole number from 1');
    const { source, secrets } =
      path === undefined
        ? { source: sourceOfFlags(withUrl(options)), secrets: [] }
        : await sourceOfFile(path, options, signal);
    // Loaded here: the other `workflows` commands send no requests.
    const { previewSource } = await import('../sources/http/preview.ts');
    const { allowNetworks } = configOf(options);
    const agent = `flowhook/${VERSION}`;
    show(
      await previewSource({
        source,
        secrets,
        from,
        pages,
        allowNetworks: allowNetworks.text,
        agent,
        signal,
        onLog: warn,
      }),
      options,
    );
  } finally {
    interrupted.clear();
  }
}

/** A saved response needs no URL; one is made up to resolve its links. */
function withUrl(options: Options): Options {
  if (options.url !== undefined) return options;
  if (options.from === undefined) throw new UsageError('Name a workflow file, or the source with --url');
  const name = String(options.from).split('/').at(-1) ?? '';
  return { ...options, url: [`http://saved.invalid/${encodeURIComponent(name)}`] };
}

async function sourceOfFile(
  path: string,
  options: Options,
  signal: AbortSignal,
): Promise<{ source: HttpSource; secrets: string[] }> {
  const loaded = await loadWorkflowFile(path, { runAs: configOf(options).runAs, log: silentLogger, signal });
  if ('mistakes' in loaded) {
    throw new UsageError(
      loaded.mistakes
        .map(({ line, message }) => `${path}${line === null ? '' : `:${line}`}: ${message}`)
        .join('\n'),
    );
  }
  const { directory, team, definition } = loaded;
  if (definition.source.type !== 'http') {
    throw new UsageError(`${path} is no http source: \`flowhook workflows test\` tries any kind`);
  }
  const secrets = await teamSecrets({ directory, team, environment: configOf(options).environment });
  return {
    source: fillSecrets(definition.source, { team, secrets }),
    secrets: [...secrets.values()],
  };
}

function show(found: Preview, options: Options): void {
  print(options, found, previewLines(found));
  if (found.error !== null || found.read === 0) process.exitCode = 1;
}

/** The first records as a table, how many of them have each field, and the requests that were sent. */
export function previewLines(found: Preview): string[] {
  const { records, read, filled, requests, next, unfilled, error } = found;
  const names = Object.keys(filled).sort((a, b) => order(found, a) - order(found, b));
  const cell = (value: unknown) =>
    value === undefined ? '' : oneLine(typeof value === 'string' ? value : JSON.stringify(value), WIDEST);
  return [
    ...(read === 0
      ? []
      : columns([names, ...records.map((record) => names.map((name) => cell(record[name])))])),
    ...(read > records.length ? [`… the first ${records.length} of ${read}`] : []),
    ...(read === 0 ? [] : ['']),
    ...columns(
      (read === 0 ? [] : names).map((name) => [
        name,
        `${Math.round(((filled[name] ?? 0) * 100) / read)} %`,
        `${filled[name] ?? 0} of ${read}`,
      ]),
    ),
    ...(read === 0 ? [] : ['']),
    ...requests.map(({ method, url, status, ms }) => `${method} ${url}  ${status}, ${durationWords(ms)}`),
    ...(next === null ? [] : [`${next.method} ${next.url}  would be next`]),
    ...unfilled,
    error === null
      ? read === 0
        ? 'No records: does `records` lead to them?'
        : countWords(read, 'record')
      : `Failed: ${error}`,
  ];
}

/** Sorts fields as in the first record that has them. */
function order({ records }: Preview, name: string): number {
  for (const [row, record] of records.entries()) {
    const at = Object.keys(record).indexOf(name);
    if (at !== -1) return row * 1_000 + at;
  }
  return Number.MAX_SAFE_INTEGER;
}
