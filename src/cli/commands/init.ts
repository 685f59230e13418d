/** `flowhook init` and `flowhook config`: creates the files of a new installation, and shows the settings. */
import { existsSync, statSync, writeFileSync } from 'node:fs';
import { dirname, join, relative, resolve } from 'node:path';
import type { CreatedWebhook } from '../../../client/src/flowhook-client.ts';
import { commentedSettings } from '../../config/commented-file.ts';
import { ConfigError } from '../../config/config.ts';
import { settingsByGroup } from '../../config/settings.ts';
import { misspelledVariables } from '../../config/sources.ts';
import { destinationWords } from '../../model/messages/destination.ts';
import { DEFAULT_TEAM } from '../../model/team.ts';
import { makeDirectory } from '../../std/make-directory.ts';
import { isExecutable, readOwnFile } from '../../std/own-files.ts';
import type { Command } from '../command.ts';
import { exitCodeOf } from '../exit.ts';
import { callFrom, inShell } from '../how-called.ts';
import { addAllSettings, configOf, type Options } from '../options.ts';
import { columns, print, say } from '../terminal.ts';
import type { New } from './destinations.ts';

/** The template of the systemd unit contains this directory. It is replaced with the directory of the installation. */
const DIRECTORY_OF_UNIT = '/etc/flowhook';

/** The command in the template of the systemd unit. The executable replaces it with its own path. */
const PROGRAM_OF_UNIT = '/usr/bin/env flowhook';

/** Functions that return the content of each file, by the path of the file in the new directory. */
const FILES: Readonly<Record<string, (directory: string) => string>> = {
  'flowhook.yaml': commentedSettings,
  'workflows/default/hello.yaml': () => readOwnFile('templates/hello.yaml'),
  '.env.example': () => readOwnFile('templates/env.example'),
  '.gitignore': () => readOwnFile('templates/gitignore'),
  'compose.yaml': () => readOwnFile('compose.yaml'),
  'flowhook.service': unitOf,
};

export function addInit(program: Command): void {
  program
    .command('init')
    .description(
      'create the files of a new installation: flowhook.yaml with all settings as comments, an example workflow, ' +
        'compose.yaml and a systemd unit; existing files are kept',
    )
    .withExamples('init', 'init /etc/flowhook', 'init --notify https://hooks.slack.com/services/…')
    .argument('[directory]', 'directory for the files, created if missing', '.')
    .option('--force', 'overwrite existing files')
    .option(
      '--notify <destination>',
      'also create the database, with a webhook that writes to people when something breaks: to a mail address, or to the ' +
        'URL of an incoming webhook of Slack, Discord or Teams',
    )
    .option('--json', 'print JSON')
    .action(init);
}

async function init(where: string, options: Options): Promise<void> {
  const { notify } = options;
  const notices =
    notify === undefined ? undefined : (await import('./destinations.ts')).noticesFor(String(notify), {});
  const directory = resolve(where);
  const written: string[] = [];
  const kept: string[] = [];
  for (const [file, content] of Object.entries(FILES)) {
    const isWritten = write(join(directory, file), content(directory), options.force === true);
    (isWritten ? written : kept).push(file);
  }
  const made = notices === undefined ? undefined : await subscribePeople(directory, notices);
  const webhook = made?.webhook;
  print(
    options,
    { directory, written, left: kept, ...(made === undefined ? {} : { webhook: webhook ?? null }) },
    [...written.map((file) => `wrote ${file}`), ...kept.map((file) => `kept  ${file} (already exists)`)],
  );
  if (kept.length > 0) say('To overwrite existing files, use --force');
  if (webhook !== undefined)
    say(`${webhook.message} It writes to ${destinationWords(webhook.url, webhook.format)}`);
  say(nextSteps(directory, { destination: webhook === undefined ? (notify ?? null) : undefined }));
}

/**
 * Creates the webhook that writes to people when something breaks, in the database that a server in this directory uses.
 * The webhook is missing if mail has no server yet.
 */
async function subscribePeople(directory: string, notices: New): Promise<{ webhook?: CreatedWebhook }> {
  const before = process.cwd();
  // Settings and paths are those of the new directory.
  process.chdir(directory);
  try {
    if (notices.format === 'mail' && configOf({}).smtpUrl === undefined) return {};
    const { localClient } = await import('../local-server.ts');
    const { withStore } = await import('../open.ts');
    let webhook: CreatedWebhook | undefined;
    await withStore({}, { make: true }, async (store, config) => {
      const { id: teamId } = await store.teams.ensure({ slug: DEFAULT_TEAM });
      webhook = await localClient({ store, config, teamId }).webhooks.create(notices);
    });
    return webhook === undefined ? {} : { webhook };
  } finally {
    process.chdir(before);
  }
}

/** @returns false when the file already exists; it is then kept unchanged */
function write(file: string, content: string, force: boolean): boolean {
  try {
    makeDirectory(dirname(file), 0o777);
    if (!force && existsSync(file)) return false;
    // The flag `wx` prevents overwriting a file that was created since the check.
    writeFileSync(file, content, { flag: force ? 'w' : 'wx' });
    return true;
  } catch (error) {
    const { message } = error as NodeJS.ErrnoException;
    throw new Error(`${file} cannot be written: ${message}. Choose a directory that this user may write to`);
  }
}

/** @param notify.destination of a webhook that must still be created; null: to be chosen; undefined: it exists */
function nextSteps(directory: string, notify: { destination: unknown }): string {
  const program = callFrom(directory);
  const below = relative(process.cwd(), directory);
  const from = below.startsWith('..') ? directory : below;
  const hidden = hiddenFromUnit(directory);
  return [
    '',
    'Next steps:',
    ...(from === '' ? [] : [`  cd ${inShell(from)}`]),
    `  ${program} serve                # prints the first API key and a link to the dashboard`,
    `  ${program} run hello --wait     # in a second terminal`,
    `  ${program} data get hello`,
    ...notifyStep(program, notify.destination),
    'The comments in flowhook.service and compose.yaml explain how to use them.',
    ...(hidden === undefined
      ? []
      : [
          `flowhook.service does not work here: the user of the service cannot access ${hidden}. ` +
            `For systemd, run \`init\` for a directory such as /etc/flowhook${isExecutable ? ', with the executable in /usr/local/bin' : ''}.`,
        ]),
  ].join('\n');
}

function notifyStep(program: string, destination: unknown): string[] {
  if (destination === undefined) return [];
  const command = (to: string) => `  ${program} webhooks notify ${to}`;
  if (destination === null)
    return [`${command('me@example.org')}   # or a URL of Slack: a message when something breaks`];
  return [`${command(inShell(String(destination)))}   # after setting smtpUrl and mailFrom in flowhook.yaml`];
}

/** Returns the directory or the executable, if a service under systemd cannot access it. */
function hiddenFromUnit(directory: string): string | undefined {
  return [directory, ...(isExecutable ? [process.execPath] : [])].find((path) => {
    // The unit has its own empty /tmp and /var/tmp.
    if (/^\/(var\/)?tmp\//.test(path)) return true;
    // The service runs as a user of its own, who must be able to pass every directory.
    for (let place = path; place !== dirname(place); place = dirname(place)) {
      if ((statSync(place).mode & 0o001) === 0) return true;
    }
    return false;
  });
}

/** Returns the systemd unit, in which % must be escaped. It quotes programs as a shell does. */
function unitOf(directory: string): string {
  const escaped = (path: string) => path.replaceAll('%', '%%');
  const program = isExecutable ? inShell(escaped(process.execPath)) : PROGRAM_OF_UNIT;
  return readOwnFile('templates/flowhook.service')
    .replaceAll(DIRECTORY_OF_UNIT, () => escaped(directory))
    .replace(PROGRAM_OF_UNIT, () => program);
}

export function addConfig(program: Command): void {
  const config = program.command('config').description('print and check the settings');
  const printing = config
    .command('print')
    .description(
      'print the settings that a server started with these flags and variables would use; secrets are masked',
    )
    .withExamples('config print --show-origin', 'config print --port 9000 --json')
    .option('--show-origin', 'print the source of each value: a flag, a variable or a file')
    .option('--json', 'print JSON');
  addAllSettings(printing).action(printConfig);
  const checking = config
    .command('check')
    .description(
      'check the settings that a server started with these flags and variables would use; exit code 2 if any is invalid',
    )
    .withExamples('config check', 'config check --host 0.0.0.0 --json')
    .option('--json', 'print JSON');
  addAllSettings(checking).action(checkConfig);
}

function printConfig(options: Options): void {
  const { settings } = configOf(options);
  const lines = columns(
    settings.map(({ name, value, origin, from }) => [
      name,
      value ?? '–',
      ...(options.showOrigin === true ? [from ?? origin] : []),
    ]),
  );
  const byName = new Map(settings.map(({ name }, at) => [name, lines[at] ?? '']));
  const groups = settingsByGroup().map((group) => [
    `# ${group.title}`,
    ...group.settings.map(({ name }) => byName.get(name) ?? ''),
  ]);
  print(
    options,
    settings,
    groups.flatMap((group, at) => (at === 0 ? group : ['', ...group])),
  );
}

/**
 * Checks the settings. A mistake prevents a server from starting. A doubt is about a variable whose name is probably
 * misspelled.
 */
function checkConfig(options: Options): void {
  try {
    const doubts = misspelledVariables(configOf(options).environment);
    print(options, { ok: true, mistakes: [], doubts }, [...doubts, 'The settings are valid']);
  } catch (error) {
    if (options.json !== true || !(error instanceof ConfigError)) throw error;
    print(options, { ok: false, mistakes: error.mistakes, doubts: [] }, []);
    process.exitCode = exitCodeOf(error);
  }
}
