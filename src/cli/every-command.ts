/** What all commands have alike: examples first, `--json`, `--quiet`, and where the exit codes stand. */
import type { Command } from 'commander';
import { EXAMPLES } from './examples.ts';
import { beQuiet } from './say.ts';

const EXIT_CODES: readonly [code: number, meaning: string][] = [
  [0, 'ok; of `run` and `jobs watch`: the job has finished'],
  [1, 'failed; of `run` and `jobs watch`: the job failed or was canceled'],
  [2, 'usage: an option or argument is wrong'],
  [3, 'not found'],
  [4, 'unauthorised: the key is missing or refused'],
  [5, 'conflict: a job is queued already, a port is taken'],
  [6, 'unreachable: the server or the database cannot be reached'],
  [7, 'timed out'],
];

/** To be called when the commands have been added. */
export function finishCommands(program: Command): void {
  for (const { path, command } of leavesOf(program)) {
    const has = (flag: string) => command.options.some(({ long }) => long === flag);
    if (!has('--quiet')) command.option('--quiet', 'say nothing but data and errors');
    const examples = EXAMPLES[path] ?? [];
    if (examples.length > 0) {
      const lines = examples.map(
        (example) => `  ${example.includes('flowhook ') ? '' : 'flowhook '}${example}`,
      );
      command.addHelpText('before', `Examples:\n${lines.join('\n')}\n`);
    }
    command.addHelpText('after', '\nExit codes: flowhook help exit-codes');
  }
  program
    .command('exit-codes', { hidden: true })
    .description(
      `what the exit codes mean\n${EXIT_CODES.map(([code, meaning]) => `\n  ${code}  ${meaning}`).join('')}`,
    )
    .action((_options, command: Command) => command.outputHelp());
  program.addHelpText(
    'after',
    '\nExit codes: 0 ok, 1 failed, 2 usage, 3 not found, 4 unauthorised, 5 conflict, 6 unreachable, 7 timed out',
  );
  program.hook('preAction', (_, command) => {
    if (command.opts().quiet === true) beQuiet();
  });
}

/** The commands that do something, with their names: `jobs list`. */
export function leavesOf(command: Command, path = ''): { path: string; command: Command }[] {
  return command.commands
    .filter((one) => one.name() !== 'exit-codes')
    .flatMap((one) => {
      const name = path === '' ? one.name() : `${path} ${one.name()}`;
      return one.commands.length > 0 ? leavesOf(one, name) : [{ path: name, command: one }];
    });
}
