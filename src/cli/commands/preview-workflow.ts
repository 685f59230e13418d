/** `flowhook workflows preview|new`: tests the paths of an HTTP source, and proposes a workflow file for a URL. */
import { existsSync } from 'node:fs';
import { writeFile } from 'node:fs/promises';
import { dirname, extname, resolve } from 'node:path';
import { stringify } from 'yaml';
import { parseYamlDefinition } from '../../definitions/definition.ts';
import { EXTENSIONS } from '../../definitions/files.ts';
import { loadWorkflowFile } from '../../definitions/load.ts';
import { type Proposal, proposalText } from '../../definitions/proposals/proposal.ts';
import { teamSecrets } from '../../definitions/secrets.ts';
import { mistakeLine } from '../../definitions/section.ts';
import type { HttpSource } from '../../model/http-source.ts';
import { silentLogger } from '../../observe/log.ts';
import type { Preview } from '../../sources/http/preview.ts';
import { fillSecrets } from '../../sources/secrets.ts';
import { countWords, durationWords } from '../../std/amounts.ts';
import { VERSION } from '../../std/version.ts';
import { NotFoundError, UsageError } from '../exit.ts';
import { oneLine } from '../job-words.ts';
import { configOf, type Options } from '../options.ts';
import { columns, print, say, untilInterrupted, warn } from '../terminal.ts';

const MAX_CELL = 32;

export async function preview(path: string, options: Options): Promise<void> {
  const interrupted = untilInterrupted();
  try {
    const { signal } = interrupted;
    const from = options.from as string | undefined;
    if (from !== undefined && !existsSync(from)) throw new NotFoundError(`There is no file ${from}`);
    const pages = Number(options.pages);
    if (!Number.isInteger(pages) || pages < 1) throw new UsageError('--pages must be a whole number from 1');
    const { source, secrets } = await sourceOfFile(path, options, signal);
    // The code is loaded here, because other `workflows` commands send no requests.
    const { previewSource } = await import('../../sources/http/preview.ts');
    const { allowNetworks } = configOf(options);
    const agent = `flowhook/${VERSION}`;
    const of = { source, secrets, from, pages, agent, signal, onLog: warn };
    const found = await previewSource({ ...of, allowNetworks: allowNetworks.text });
    print(options, found, previewLines(found));
    if (found.error !== null || found.read === 0) process.exitCode = 1;
  } finally {
    interrupted.clear();
  }
}

async function sourceOfFile(
  path: string,
  options: Options,
  signal: AbortSignal,
): Promise<{ source: HttpSource; secrets: string[] }> {
  const loaded = await loadWorkflowFile(path, { runAs: configOf(options).runAs, log: silentLogger, signal });
  if ('mistakes' in loaded) {
    const lines = loaded.mistakes.map((mistake) => mistakeLine({ ...mistake, file: path }));
    throw new UsageError(lines.join('\n'));
  }
  const { directory, team, definition } = loaded;
  if (definition.source.type !== 'http') {
    throw new UsageError(
      `${path} has no http source. To test other sources, run \`flowhook workflows test\``,
    );
  }
  const secrets = await teamSecrets({ directory, team, environment: configOf(options).environment });
  return {
    source: fillSecrets(definition.source, { team, secrets }),
    secrets: [...secrets.values()],
  };
}

/** Formats a preview: the first records as a table, the number of records that have each field, and the requests. */
function previewLines(found: Preview): string[] {
  const { records, read, filled, requests, next, unfilled, error } = found;
  const names = Object.keys(filled).sort((a, b) => order(found, a) - order(found, b));
  const cell = (value: unknown) =>
    value === undefined ? '' : oneLine(typeof value === 'string' ? value : JSON.stringify(value), MAX_CELL);
  return [
    ...(read === 0
      ? []
      : columns([names, ...records.map((record) => names.map((name) => cell(record[name])))])),
    ...(read > records.length ? [`… the first ${records.length} of ${countWords(read, 'record')}`] : []),
    ...(read === 0 ? [] : ['']),
    ...columns(
      (read === 0 ? [] : names).map((name) => [
        name,
        `${Math.round(((filled[name] ?? 0) * 100) / read)}%`,
        `${filled[name] ?? 0} of ${read}`,
      ]),
    ),
    ...(read === 0 ? [] : ['']),
    ...requests.map(({ method, url, status, ms }) => `${method} ${url}  ${status}, ${durationWords(ms)}`),
    ...(next === null ? [] : [`${next.method} ${next.url}  (next page, not read)`]),
    ...unfilled,
    error === null
      ? read === 0
        ? 'No records. Check the path in `records`'
        : countWords(read, 'record')
      : `Failed: ${error}`,
  ];
}

/** Returns the sort key of a field: its position in the first record that has the field. */
function order({ records }: Preview, name: string): number {
  for (const [row, record] of records.entries()) {
    const at = Object.keys(record).indexOf(name);
    if (at !== -1) return row * 1_000 + at;
  }
  return Number.MAX_SAFE_INTEGER;
}

export async function propose(url: string, options: Options): Promise<void> {
  const out = options.out as string | undefined;
  if (out !== undefined && existsSync(out))
    throw new UsageError(`${out} already exists. Choose another file`);
  if (out !== undefined && !existsSync(dirname(out)))
    throw new NotFoundError(`There is no directory ${dirname(out)}`);
  if (!/^https?:\/\//.test(url))
    throw new UsageError(`${JSON.stringify(url)} is not a URL. Begin it with https://`);
  const named = ((options.header ?? []) as string[]).find((line) => line.includes('${secret.'));
  if (named !== undefined) {
    throw new UsageError(
      'This command cannot read the secrets of a team. Set the header to the value itself, not to a reference',
    );
  }
  const given = { type: 'http', url, headers: headersFrom(options.header) };
  const bare = checkedSource(stringify({ source: given }), 'default/new.yaml');
  const interrupted = untilInterrupted();
  try {
    const { signal } = interrupted;
    const allowNetworks = configOf(options).allowNetworks.text;
    const asked = {
      allowNetworks,
      agent: `flowhook/${VERSION}`,
      signal,
      onLog: warn,
    };
    // The code is loaded here, because other `workflows` commands send no requests.
    const { proposeFor } = await import('../../definitions/proposals/propose.ts');
    const { previewSource } = await import('../../sources/http/preview.ts');
    const proposal = withHeaders(await proposeFor(bare, asked), bare.headers);
    const text = proposalText(proposal);
    const source = checkedSource(text, 'default/new.yaml');
    const preview = await previewSource({ source, secrets: [], from: undefined, pages: 1, ...asked });
    // The flag `wx` is needed because the file may have been created since the check above.
    if (out !== undefined) await writeFile(out, text, { flag: 'wx' });
    const lines = previewLines(preview);
    const { doubts, ...definition } = proposal;
    const shown = { file: out ?? null, text, definition, doubts, preview };
    print(options, shown, out === undefined ? text.trimEnd().split('\n') : [...lines, '', out]);
    if (options.json !== true && out === undefined) say(lines.join('\n'));
    say(
      `${doubts.length === 0 ? '' : 'Check the comments in the proposal: they mark uncertain choices. '}` +
        nextStep(out, configOf(options).workflowsDirectory),
    );
    if (preview.error !== null || preview.read === 0) process.exitCode = 1;
  } finally {
    interrupted.clear();
  }
}

/** Matches the names of headers whose values are usually secret. */
const SECRET_HEADER = /auth|cookie|key|token|secret/i;

/** Adds the headers of the requests to the proposal, with a comment on headers that may be secret. */
function withHeaders(proposal: Proposal, headers: Readonly<Record<string, string>>): Proposal {
  if (Object.keys(headers).length === 0) return proposal;
  const { type, url, ...rest } = proposal.source;
  const doubts = Object.keys(headers)
    .filter((name) => SECRET_HEADER.test(name))
    .map((name) => ({
      at: ['source', 'headers', name],
      // biome-ignore lint/suspicious/noTemplateCurlyInString: a definition refers to a secret like this.
      text: 'If this is a secret, put it into secrets/<team>.yaml next to the workflows directory and write ${secret.NAME} here.',
    }));
  return {
    ...proposal,
    source: { type, url, headers, ...rest },
    doubts: [...proposal.doubts, ...doubts],
  };
}

/** Says what to do next with the proposal. */
function nextStep(out: string | undefined, workflowsDirectory: string): string {
  const place = `<team>/<id>.yaml in the workflows directory (${workflowsDirectory})`;
  if (out === undefined) {
    return `Save it as ${place}, or use --out. Then test it with \`flowhook workflows test FILE\``;
  }
  const isInPlace = dirname(dirname(resolve(out))) === resolve(workflowsDirectory);
  const isNamed = EXTENSIONS.includes(extname(out));
  const move = isInPlace && isNamed ? '' : `Move it to ${place}. `;
  return `${move}Test it with \`flowhook workflows test ${out}\`, then apply it with \`flowhook apply\``;
}

/** Checks a definition as `apply` would. @throws UsageError with one line per mistake */
function checkedSource(text: string, file: string): HttpSource {
  const parsed = parseYamlDefinition(text, { file });
  if ('mistakes' in parsed) throw new UsageError(parsed.mistakes.map(({ message }) => message).join('\n'));
  const { source } = parsed.definition;
  if (source.type !== 'http')
    throw new UsageError(
      `${file} has no http source. To test other sources, run \`flowhook workflows test\``,
    );
  return source;
}

/** Parses the headers in `--header name: value`. @throws UsageError */
function headersFrom(values: unknown): Record<string, string> {
  return Object.fromEntries(
    ((values ?? []) as string[]).map((value) => {
      const [, name, text] = /^([^:]+):(.*)$/s.exec(value) ?? [];
      if (name === undefined)
        throw new UsageError(`--header must be of the form name: value, found "${value}"`);
      return [name.trim(), text?.trim() ?? ''];
    }),
  );
}
