/** `flowhook config`: which settings hold here, and where they come from. */
import type { Command } from 'commander';
import { SETTINGS } from '../config/settings.ts';
import { print } from './open.ts';
import { addSettings, configOf, type Options } from './settings.ts';
import { columns } from './words.ts';

export function addConfig(program: Command): void {
  const command = program
    .command('config')
    .description('the settings')
    .command('print')
    .description(
      'print every setting with the value that holds for a server that is started like this; secrets are not shown',
    )
    .option('--show-origin', 'say where each value comes from: a flag, the environment, a file')
    .option('--json', 'print JSON');
  addSettings(
    command,
    SETTINGS.map(({ name }) => name),
  );
  command.action(printConfig);
}

function printConfig(options: Options): void {
  const { settings } = configOf(options);
  const rows = settings.map(({ name, value, origin, from }) => [
    name,
    value ?? '–',
    ...(options.showOrigin === true ? [from ?? origin] : []),
  ]);
  print(options, settings, columns(rows));
}
