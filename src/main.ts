/** The entry point: loads the called command, runs it, prints its error and sets the exit code. */
import { CommanderError } from 'commander';
import { Command } from './cli/command.ts';
import { exitCodeOf, sentenceOf } from './cli/exit.ts';
import { finishCommands, rejectHelpOnNothing, rejectVerbWithoutNoun } from './cli/help.ts';
import { endedEarly, warn } from './cli/terminal.ts';
import { VERSION } from './std/version.ts';

/** Functions that add the commands. To start fast, only the files of the called command are loaded. */
const COMMANDS: readonly [name: string, load: () => Promise<(program: Command) => void>][] = [
  ['init', async () => (await import('./cli/commands/init.ts')).addInit],
  ['serve', async () => (await import('./cli/commands/serve.ts')).addServe],
  ['run', async () => (await import('./cli/commands/jobs.ts')).addRun],
  ['jobs', async () => (await import('./cli/commands/jobs.ts')).addJobs],
  ['workflows', async () => (await import('./cli/commands/workflows.ts')).addWorkflows],
  ['apply', async () => (await import('./cli/commands/workflow-files.ts')).addApply],
  ['data', async () => (await import('./cli/commands/data.ts')).addData],
  ['state', async () => (await import('./cli/commands/state.ts')).addState],
  ['quarantine', async () => (await import('./cli/commands/quarantine.ts')).addQuarantine],
  ['webhooks', async () => (await import('./cli/commands/webhooks.ts')).addWebhooks],
  ['deliveries', async () => (await import('./cli/commands/deliveries/all-deliveries.ts')).addAllDeliveries],
  ['search', async () => (await import('./cli/commands/search.ts')).addSearch],
  ['feeds', async () => (await import('./cli/commands/feeds.ts')).addFeeds],
  ['events', async () => (await import('./cli/commands/events.ts')).addEvents],
  ['migrate', async () => (await import('./cli/commands/database.ts')).addMigrate],
  ['backup', async () => (await import('./cli/commands/backup.ts')).addBackup],
  ['database', async () => (await import('./cli/commands/database.ts')).addDatabase],
  ['doctor', async () => (await import('./cli/commands/doctor.ts')).addDoctor],
  ['config', async () => (await import('./cli/commands/init.ts')).addConfig],
  ['dashboard', async () => (await import('./cli/commands/login.ts')).addDashboard],
  ['keys', async () => (await import('./cli/commands/keys.ts')).addKeys],
  ['audit', async () => (await import('./cli/commands/events.ts')).addAudit],
  ['teams', async () => (await import('./cli/commands/teams.ts')).addTeams],
  ['login', async () => (await import('./cli/commands/login.ts')).addLogin],
  ['completion', async () => (await import('./cli/commands/completion.ts')).addCompletion],
];

/** These commands need all other commands to be loaded. */
const WHOLE = ['completion'];

/** @param name the called command. If no command has this name, all commands are added */
export async function programOf(name: string | undefined): Promise<Command> {
  const program = new Command('flowhook')
    .description(
      'Run workflows as jobs that publish versioned records, read the records over HTTP, and get webhooks when they change.',
    )
    .version(VERSION)
    // After a command, `--version` is not this option: `data get people --version 3` would print the version of Flowhook.
    .enablePositionalOptions()
    .showHelpAfterError('(--help shows all commands and options)')
    .exitOverride();
  // `--version` needs no command, and loading all commands takes 0.3 s of CPU time.
  if (name === '--version' || name === '-V') return program;
  // `login` adds all three commands.
  const file = name === 'logout' || name === 'profiles' ? 'login' : name;
  const called = COMMANDS.filter(([one]) => one === file && !WHOLE.includes(one));
  for (const [, load] of called.length > 0 ? called : COMMANDS) (await load())(program);
  finishCommands(program);
  return program;
}

/** @param argv as in `process.argv` */
export async function main(argv: readonly string[]): Promise<void> {
  // A reader that stops early, such as `head`, is not an error. A server continues without readers.
  process.stdout.on('error', (error: NodeJS.ErrnoException) => {
    if (argv[2] === 'serve') return;
    if (error.code !== 'EPIPE') throw error;
    process.exit();
  });
  const program = await programOf(argv[2]);
  try {
    rejectHelpOnNothing(program, argv.slice(2));
    rejectVerbWithoutNoun(program, argv.slice(2));
    await program.parseAsync([...argv]);
  } catch (error) {
    if (error instanceof CommanderError) {
      // Commander has already printed the message. A request for help is not an error.
      process.exitCode = error.exitCode === 0 ? 0 : 2;
      return;
    }
    warn(`flowhook: ${sentenceOf(error)}`);
    process.exitCode = exitCodeOf(error);
  } finally {
    process.exitCode = endedEarly() ?? process.exitCode;
  }
}
