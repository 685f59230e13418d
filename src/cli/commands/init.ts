/** `flowhook init` and `flowhook config`: writes the files of a new installation, and shows the settings. */
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname, join, relative, resolve } from 'node:path';
import type { Command } from 'commander';
import { commentedSettings } from '../../config/commented-file.ts';
import { ConfigError } from '../../config/config.ts';
import { settingsByGroup } from '../../config/settings.ts';
import { misspeltVariables } from '../../config/sources.ts';
import { exitCodeOf } from '../exit.ts';
import { addAllSettings, configOf, type Options } from '../options.ts';
import { columns, print, say } from '../terminal.ts';

/** The directory in the unit of `templates/`, which is replaced. */
const DIRECTORY_OF_UNIT = '/etc/flowhook';

/** What each file contains, by its path in the directory. */
const FILES: Readonly<Record<string, (directory: string) => string>> = {
  'flowhook.yaml': commentedSettings,
  'workflows/default/hello.yaml': () => packed('templates/hello.yaml'),
  '.env.example': () => packed('templates/env.example'),
  '.gitignore': () => packed('templates/gitignore'),
  'compose.yaml': () => packed('compose.yaml'),
  'flowhook.service': unitOf,
};

export function addInit(program: Command): void {
  program
    .command('init')
    .description(
      'write the files to start with: flowhook.yaml with every setting as a comment, a workflow, compose.yaml, and a unit for systemd; existing files are kept',
    )
    .argument('[directory]', 'where to; created if it is missing', '.')
    .option('--force', 'overwrite existing files')
    .option('--json', 'print JSON')
    .action(init);
}

function init(where: string, options: Options): void {
  const directory = resolve(where);
  const written: string[] = [];
  const left: string[] = [];
  for (const [file, content] of Object.entries(FILES)) {
    const isWritten = write(join(directory, file), content(directory), options.force === true);
    (isWritten ? written : left).push(file);
  }
  print(options, { directory, written, left }, [
    ...written.map((file) => `wrote ${file}`),
    ...left.map((file) => `kept  ${file}, which exists`),
  ]);
  if (left.length > 0) say('--force overwrites existing files.');
  say(nextSteps(relative(process.cwd(), directory)));
}

/** @returns false when the file exists and is kept */
function write(file: string, content: string, force: boolean): boolean {
  try {
    mkdirSync(dirname(file), { recursive: true });
    if (!force && existsSync(file)) return false;
    // `wx`: not even a file that somebody else creates in this moment is overwritten.
    writeFileSync(file, content, { flag: force ? 'w' : 'wx' });
    return true;
  } catch (error) {
    const { message } = error as NodeJS.ErrnoException;
    throw new Error(`${file} cannot be written: ${message}. Name a directory that this user may write to`);
  }
}

function nextSteps(directory: string): string {
  return [
    '',
    'What to do next:',
    ...(directory === '' ? [] : [`  cd ${inShell(directory)}`]),
    '  flowhook serve                # prints a first key, and a link to the dashboard',
    '  flowhook run hello --wait     # in a second terminal',
    '  flowhook data get hello',
    'flowhook.service and compose.yaml say at their heads how they are used.',
  ].join('\n');
}

function inShell(path: string): string {
  return /^[\w./-]+$/.test(path) ? path : `'${path.replaceAll("'", "'\\''")}'`;
}

/** The unit for systemd, in which % begins a placeholder and must be escaped. */
function unitOf(directory: string): string {
  const written = directory.replaceAll('%', '%%');
  return packed('templates/flowhook.service').replaceAll(DIRECTORY_OF_UNIT, () => written);
}

/** A file of the package; the path is the same from `src/cli/` and from the built `dist/cli/`. */
function packed(path: string): string {
  return readFileSync(new URL(`../../../${path}`, import.meta.url), 'utf8');
}

export function addConfig(program: Command): void {
  const config = program.command('config').description('the settings');
  const printing = config
    .command('print')
    .description(
      'print every setting with the value that a server started this way would use; secrets are not shown',
    )
    .option('--show-origin', 'say where each value comes from: a flag, the environment, a file')
    .option('--json', 'print JSON');
  addAllSettings(printing).action(printConfig);
  const checking = config
    .command('check')
    .description(
      'check the settings that a server started this way would use, without starting it; exit code 2 if any are wrong',
    )
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

/** A mistake keeps a server from starting; a doubt is a variable that has no effect. */
function checkConfig(options: Options): void {
  try {
    const doubts = misspeltVariables(configOf(options).environment);
    print(options, { ok: true, mistakes: [], doubts }, [...doubts, 'The settings are valid']);
  } catch (error) {
    if (options.json !== true || !(error instanceof ConfigError)) throw error;
    print(options, { ok: false, mistakes: error.mistakes, doubts: [] }, []);
    process.exitCode = exitCodeOf(error);
  }
}
