/** Adds the common parts of every command: examples at the top of the help, `--quiet`, and a note on exit codes. */
import type { EventEmitter } from 'node:events';
import { nearest } from '../std/nearest.ts';
import type { Command } from './command.ts';
import { EXIT_CODES } from './exit.ts';
import { beQuiet, wrapped } from './terminal.ts';

/** The examples at the top of `flowhook --help`. */
const FIRST_STEPS = [
  'serve',
  'run people --wait',
  'webhooks subscribe people https://example.com/hook',
  'jobs list --state failed',
];
/** Maximum number of examples in the help of a noun, such as `flowhook jobs --help`. */
const EXAMPLES_OF_A_NOUN = 4;
/** The width of the help, in characters, when the width of the terminal is unknown. */
const WIDTH = 80;

/** Completes the help of all commands. It must be called after the commands have been added. */
export function finishCommands(program: Command): void {
  for (const { command } of leavesOf(program)) {
    const has = (flag: string) => command.options.some(({ long }) => long === flag);
    if (!has('--quiet')) command.option('--quiet', 'print only data and errors');
    addExamples(command, command.examples);
    if (command.examples[0] !== undefined) {
      command.showHelpAfterError(`Example: ${wholeExample(command.examples[0])}\n(--help shows all options)`);
    }
    wrapNotes(command);
    command.addHelpText('after', '\nExit codes: flowhook help exit-codes');
    reportMissingLast(command);
  }
  for (const noun of program.commands.filter(({ commands }) => commands.length > 0)) {
    const verbs = leavesOf(noun).flatMap(({ command }) => command.examples.slice(0, 1));
    addExamples(noun, verbs.slice(0, EXAMPLES_OF_A_NOUN));
    wrapNotes(noun);
  }
  addExamples(program, FIRST_STEPS);
  program
    .command('exit-codes', { hidden: true })
    .description(
      `what the exit codes mean\n${EXIT_CODES.map(([code, meaning]) => `\n  ${code}  ${meaning}`).join('')}`,
    )
    .action((_options, command: Command) => command.outputHelp());
  program.addHelpText(
    'after',
    `\n${wrapped(`Exit codes: ${EXIT_CODES.map(([code, meaning]) => `${code} ${/^[^;:]+/.exec(meaning)}`).join(', ')}`, WIDTH)}`,
  );
  program.hook('preAction', (_, command) => beQuiet(command.opts().quiet === true));
}

/**
 * Reports unknown flags before missing flags, because an unknown flag may be a misspelling of a missing flag. Commander
 * does the opposite.
 */
function reportMissingLast(command: Command): void {
  const mandatory = command.options.filter((option) => option.mandatory);
  for (const option of mandatory) option.mandatory = false;
  command.hook('preAction', () => {
    const missing = mandatory.find((option) => command.getOptionValue(option.attributeName()) === undefined);
    if (missing !== undefined) command.error(`error: required option '${missing.flags}' is missing`);
  });
}

function addExamples(command: Command, examples: readonly string[]): void {
  if (examples.length === 0) return;
  const lines = examples.map((example) => `  ${continued(wholeExample(example))}`);
  command.addHelpText('before', `Examples:\n${lines.join('\n')}\n`);
}

/** Returns an example as the user types it, including `flowhook`. */
export function wholeExample(example: string): string {
  return /(?:^| )flowhook /.test(example) ? example : `flowhook ${example}`;
}

/** Breaks a long example into lines that end in a backslash. */
function continued(example: string): string {
  const at = example.lastIndexOf(' --', WIDTH - ' \\'.length);
  if (example.length + '  '.length <= WIDTH || at < 0) return example;
  return `${example.slice(0, at)} \\\n      ${continued(example.slice(at + 1))}`;
}

/** Wraps the notes that a command adds to its help, because commander does not. */
function wrapNotes(command: Command): void {
  const emitter = command as unknown as EventEmitter;
  const width = () => command.configureOutput().getOutHelpWidth?.() ?? WIDTH;
  for (const write of emitter.listeners('afterHelp')) {
    emitter.off('afterHelp', write as () => void);
    command.on('afterHelp', (context: { write(text: string): void }) =>
      write({ ...context, write: (text: string) => context.write(wrapped(text, width())) }),
    );
  }
}

/** Returns all commands without subcommands, with paths such as `jobs list`. */
export function leavesOf(command: Command, path = ''): { path: string; command: Command }[] {
  return command.commands
    .filter((one) => one.name() !== 'exit-codes')
    .flatMap((one) => {
      const name = path === '' ? one.name() : `${path} ${one.name()}`;
      return one.commands.length > 0 ? leavesOf(one, name) : [{ path: name, command: one }];
    });
}

/**
 * Rejects a verb without its noun, such as `flowhook validate`, and names the noun. For other unknown words, commander
 * suggests a command.
 */
export function rejectVerbWithoutNoun(program: Command, [verb]: readonly string[]): void {
  if (verb === undefined || program.commands.some((command) => command.name() === verb)) return;
  const meant = leavesOf(program)
    .map(({ path }) => path)
    .filter((path) => path.endsWith(` ${verb}`));
  if (meant.length === 0 || verb === 'help') return;
  program.error(`error: unknown command '${verb}'\n(Did you mean ${meant.join(' or ')}?)`);
}

/**
 * Rejects a request for help on an unknown command, such as `flowhook help nope`. Commander would print the general
 * help.
 */
export function rejectHelpOnNothing(program: Command, args: readonly string[]): void {
  const at = args.indexOf('help');
  const noun = at === 1 ? program.commands.find((command) => command.name() === args[0]) : program;
  if ((at !== 0 && at !== 1) || noun === undefined || noun.commands.length === 0) return;
  let command = noun;
  for (const name of args.slice(at + 1).filter((one) => !one.startsWith('-'))) {
    const found = command.commands.find((one) => one.name() === name);
    if (found === undefined && command.commands.length > 0) {
      const meant = nearest(
        name,
        command.commands.map((one) => one.name()),
      );
      const advice = meant === undefined ? '' : `\n(Did you mean ${meant}?)`;
      command.error(`error: unknown command '${name}'${advice}`);
    }
    command = found ?? command;
  }
}
