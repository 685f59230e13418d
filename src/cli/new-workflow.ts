/** `flowhook workflows new`: requests a URL and proposes a workflow file for the response. */
import { existsSync } from 'node:fs';
import { writeFile } from 'node:fs/promises';
import { dirname } from 'node:path';
import type { Command } from 'commander';
import { stringify } from 'yaml';
import { VERSION } from '../config/version.ts';
import { proposalText } from '../workflows/proposals/proposal.ts';
import { NotFoundError, UsageError } from './exit.ts';
import { print } from './output.ts';
import { previewLines } from './preview-workflow.ts';
import { say, warn } from './say.ts';
import { addSettings, configOf, type Options } from './settings.ts';
import { checkedSource } from './source-flags.ts';
import { untilInterrupted } from './until-interrupted.ts';

export function addNew(workflows: Command): void {
  const command = workflows
    .command('new')
    .description('look at a page or an API and propose a workflow file for it, with its first records')
    .argument('<url>', 'the URL of a list: a page, a JSON response, a CSV or NDJSON file')
    .option('--out <file>', 'write it to this new file (default: print it)')
    .option('--json', 'print JSON');
  addSettings(command, ['allowNetworks']).action(propose);
}

async function propose(url: string, options: Options): Promise<void> {
  const out = options.out as string | undefined;
  if (out !== undefined && existsSync(out)) throw new UsageError(`${out} exists already: name another file`);
  if (out !== undefined && !existsSync(dirname(out)))
    throw new NotFoundError(`There is no directory ${dirname(out)}`);
  if (!/^https?:\/\//.test(url))
    throw new UsageError(`${JSON.stringify(url)} is no URL: begin it with https://`);
  const bare = checkedSource(stringify({ source: { type: 'http', url } }), 'default/new.yaml');
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
    const { proposeFor } = await import('../workflows/proposals/propose.ts');
    const { previewSource } = await import('../workflows/sources/http/preview.ts');
    const proposal = await proposeFor(bare, asked);
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
        `Put it into <team>/<id>.yaml of the workflows directory, try it with \`flowhook workflows test FILE\``,
    );
    if (preview.error !== null || preview.read === 0) process.exitCode = 1;
  } finally {
    interrupted.clear();
  }
}
