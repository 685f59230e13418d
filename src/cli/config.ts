/** `flowhook config`: prints the effective settings with their origins, and checks them. */
import type { Command } from 'commander';
import { ConfigError } from '../config/config.ts';
import { settingsByGroup } from '../config/settings.ts';
import { misspeltVariables } from '../config/sources.ts';
import { exitCodeOf } from './exit.ts';
import { print } from './output.ts';
import { addAllSettings, configOf, type Options } from './settings.ts';
import { columns } from './table.ts';

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
