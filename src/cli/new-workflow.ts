/** `flowhook workflows new`: requests a URL and proposes a workflow file for the response. */
import { existsSync } from 'node:fs';
import { writeFile } from 'node:fs/promises';
import { dirname, extname, resolve } from 'node:path';
import type { Command } from 'commander';
import { stringify } from 'yaml';
import { VERSION } from '../config/version.ts';
import { EXTENSIONS } from '../definitions/files.ts';
import { type Proposal, proposalText } from '../definitions/proposals/proposal.ts';
import { NotFoundError, UsageError } from './exit.ts';
import { repeated } from './flag-values.ts';
import { print } from './output.ts';
import { previewLines } from './preview-workflow.ts';
import { say, warn } from './say.ts';
import { addSettings, configOf, type Options } from './settings.ts';
import { checkedSource, settingsOf } from './source-flags.ts';
import { untilInterrupted } from './until-interrupted.ts';

export function addNew(workflows: Command): void {
  const command = workflows
    .command('new')
    .description('look at a page or an API and propose a workflow file for it, with its first records')
    .argument('<url>', 'the URL of a list: a page, a JSON response, a CSV or NDJSON file')
    .option('--header <name: value>', 'a header of the requests (may be repeated)', repeated)
    .option('--out <file>', 'write it to this new file (default: print it)')
    .option('--json', 'print JSON');
  addSettings(command, ['allowNetworks', 'workflows']).action(propose);
}

async function propose(url: string, options: Options): Promise<void> {
  const out = options.out as string | undefined;
  if (out !== undefined && existsSync(out)) throw new UsageError(`${out} exists already: name another file`);
  if (out !== undefined && !existsSync(dirname(out)))
    throw new NotFoundError(`There is no directory ${dirname(out)}`);
  if (!/^https?:\/\//.test(url))
    throw new UsageError(`${JSON.stringify(url)} is no URL: begin it with https://`);
  const named = ((options.header ?? []) as string[]).find((line) => line.includes('${secret.'));
  if (named !== undefined) {
    throw new UsageError(
      '--header takes the value itself here: no team is known whose secrets could be read',
    );
  }
  const { source: given } = settingsOf({ url: [url], header: options.header });
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
    // Loaded here: the other `workflows` commands send no requests.
    const { proposeFor } = await import('../definitions/proposals/propose.ts');
    const { previewSource } = await import('../sources/http/preview.ts');
    const proposal = withHeaders(await proposeFor(bare, asked), bare.headers);
    const text = proposalText(proposal);
    const source = checkedSource(text, 'default/new.yaml');
    const preview = await previewSource({ source, secrets: [], from: undefined, pages: 1, ...asked });
    // `wx`: somebody else may have written it since the check above.
    if (out !== undefined) await writeFile(out, text, { flag: 'wx' });
    const lines = previewLines(preview);
    const { doubts, ...definition } = proposal;
    const shown = { file: out ?? null, text, definition, doubts, preview };
    print(options, shown, out === undefined ? text.trimEnd().split('\n') : [...lines, '', out]);
    if (options.json !== true && out === undefined) say(lines.join('\n'));
    say(
      `${doubts.length === 0 ? 'Nothing was uncertain' : 'Its comments say what was uncertain'}. ` +
        nextStep(out, configOf(options).workflowsDirectory),
    );
    if (preview.error !== null || preview.read === 0) process.exitCode = 1;
  } finally {
    interrupted.clear();
  }
}

/** Header names whose values are usually secret. */
const SECRET_HEADER = /auth|cookie|key|token|secret/i;

/** The proposal with the headers that its requests need; of one that may be secret a comment says where it belongs. */
function withHeaders(proposal: Proposal, headers: Readonly<Record<string, string>>): Proposal {
  if (Object.keys(headers).length === 0) return proposal;
  const { type, url, ...rest } = proposal.source;
  const doubts = Object.keys(headers)
    .filter((name) => SECRET_HEADER.test(name))
    .map((name) => ({
      at: ['source', 'headers', name],
      // biome-ignore lint/suspicious/noTemplateCurlyInString: that is how a definition names a secret.
      text: 'Put a secret into secrets/<team>.yaml beside the workflows directory, and write ${secret.NAME} here.',
    }));
  return {
    ...proposal,
    source: { type, url, headers, ...rest },
    doubts: [...proposal.doubts, ...doubts],
  };
}

/** What to do with the proposal: it may lie where it belongs already. */
function nextStep(out: string | undefined, workflowsDirectory: string): string {
  const place = `<team>/<id>.yaml of the workflows directory (${workflowsDirectory})`;
  if (out === undefined) {
    return `Put it into ${place}, or name that with --out; then try it with \`flowhook workflows test FILE\``;
  }
  const isInPlace = dirname(dirname(resolve(out))) === resolve(workflowsDirectory);
  const isNamed = EXTENSIONS.includes(extname(out));
  const move = isInPlace && isNamed ? '' : `Move it to ${place}. `;
  return `${move}Try it with \`flowhook workflows test ${out}\`, bring it in with \`flowhook apply\``;
}
