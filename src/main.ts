/** Picks the command, prints its error, sets the exit code. */
import { Command, CommanderError } from 'commander';
import { exitCodeOf, sentenceOf } from './cli/exit.ts';
import { VERSION } from './config.ts';

/** What adds each command. Only that of the command that is called is loaded: all of them take their time. */
const COMMANDS: readonly [name: string, load: () => Promise<(program: Command) => void>][] = [
  ['serve', async () => (await import('./cli/serve.ts')).addServe],
  ['run', async () => (await import('./cli/run.ts')).addRun],
  ['jobs', async () => (await import('./cli/jobs.ts')).addJobs],
  ['workflows', async () => (await import('./cli/workflows.ts')).addWorkflows],
  ['apply', async () => (await import('./cli/apply.ts')).addApply],
  ['data', async () => (await import('./cli/import.ts')).addImport],
  ['data', async () => (await import('./cli/data.ts')).addData],
  ['data', async () => (await import('./cli/erase.ts')).addErase],
  ['webhooks', async () => (await import('./cli/webhooks.ts')).addWebhooks],
  ['events', async () => (await import('./cli/events.ts')).addEvents],
  ['migrate', async () => (await import('./cli/migrate.ts')).addMigrate],
  ['database', async () => (await import('./cli/database.ts')).addDatabase],
  ['keys', async () => (await import('./cli/keys.ts')).addKeys],
];

/** @param argv as in `process.argv` */
export async function main(argv: readonly string[]): Promise<void> {
  const program = new Command('flowhook')
    .description(
      'Workflows run as jobs, jobs publish records, records are read over HTTP, webhooks are told.',
    )
    .version(VERSION)
    .showHelpAfterError('(add --help to see what there is)')
    .exitOverride()
    .addHelpText(
      'after',
      '\nExit codes: 0 ok, 1 failed, 2 usage, 3 not found, 4 unauthorised, 5 conflict, 6 unreachable, 7 timed out',
    );
  const called = COMMANDS.filter(([name]) => name === argv[2]);
  for (const [, load] of called.length > 0 ? called : COMMANDS) (await load())(program);
  try {
    await program.parseAsync([...argv]);
  } catch (error) {
    if (error instanceof CommanderError) {
      // Commander has printed its own sentence; asking for help is no mistake.
      process.exitCode = error.exitCode === 0 ? 0 : 2;
      return;
    }
    process.stderr.write(`flowhook: ${sentenceOf(error)}\n`);
    process.exitCode = exitCodeOf(error);
  }
}
