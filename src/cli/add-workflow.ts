/** `flowhook workflows add`: writes the file of an HTTP source described by flags. */
import { existsSync } from 'node:fs';
import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { Command } from 'commander';
import { stringify } from 'yaml';
import { isTeamSlug } from '../model/team.ts';
import { isWorkflowId } from '../model/workflow.ts';
import { UsageError } from './exit.ts';
import { repeated } from './flag-values.ts';
import { print } from './output.ts';
import { say } from './say.ts';
import { addSettings, configOf, type Options } from './settings.ts';
import { addSourceFlags, checkedSource, settingsOf } from './source-flags.ts';

export function addAdd(workflows: Command): void {
  const command = workflows
    .command('add')
    .description('write the file of an http source into the workflows directory')
    .argument('<id>', 'the new workflow: <id>, or <team>/<id>')
    .option('--name <name>', 'its name (default: its id)')
    .option('--key <field>', 'a field that makes up the id of a record (may be repeated)', repeated)
    .option('--every <duration>', 'how often to run it, such as 15m')
    .option('--force', 'overwrite an existing file')
    .option('--json', 'print JSON');
  addSourceFlags(command);
  addSettings(command, ['workflows']).action(add);
}

async function add(given: string, options: Options): Promise<void> {
  const [id = '', team = 'default'] = given.split('/', 2).reverse();
  if (!isTeamSlug(team) || !isWorkflowId(id) || given.split('/').length > 2) {
    throw new UsageError(`${JSON.stringify(given)} cannot be a workflow: write its id, or <team>/<id>`);
  }
  if (options.url === undefined) throw new UsageError('--url is missing: where the source begins');
  const { source, ...rest } = settingsOf(options);
  const settings = {
    ...(options.name === undefined ? {} : { name: options.name }),
    source,
    ...rest,
    ...(options.key === undefined ? {} : { key: options.key }),
    ...(options.every === undefined ? {} : { schedule: { every: options.every } }),
  };
  const text = stringify(settings, { lineWidth: 0 });
  const directory = join(configOf(options).workflowsDirectory, team);
  const file = join(directory, `${id}.yaml`);
  checkedSource(text, `${team}/${id}.yaml`);
  const there = ['yaml', 'yml', 'mts'].map((ending) => join(directory, `${id}.${ending}`)).find(existsSync);
  if (there !== undefined && (options.force !== true || there !== file)) {
    throw new UsageError(`${there} exists already${there === file ? '. Overwrite it with --force' : ''}`);
  }
  await mkdir(directory, { recursive: true });
  await writeFile(file, text);
  print(options, { file, team, id, definition: settings }, [file]);
  say(`Try it with \`flowhook workflows preview ${file}\`, bring it in with \`flowhook apply\``);
}
