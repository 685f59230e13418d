/** Picks the command, prints its error, sets the exit code. */
import { Command, CommanderError } from 'commander';
import { addApply } from './cli/apply.ts';
import { addData } from './cli/data.ts';
import { addErase } from './cli/erase.ts';
import { exitCodeOf, sentenceOf } from './cli/exit.ts';
import { addImport } from './cli/import.ts';
import { addKeys } from './cli/keys.ts';
import { addServe } from './cli/serve.ts';
import { addWebhooks } from './cli/webhooks.ts';
import { VERSION } from './config.ts';

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
  for (const add of [addServe, addApply, addKeys, addWebhooks, addImport, addData, addErase]) add(program);
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
