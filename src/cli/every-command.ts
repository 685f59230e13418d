/** What all commands have alike: examples first, `--json`, `--quiet`, and where the exit codes stand. */
import type { EventEmitter } from 'node:events';
import type { Command } from 'commander';
import { EXAMPLES } from './examples.ts';
import { EXIT_CODES } from './exit.ts';
import { beQuiet } from './say.ts';
import { wrapped } from './table.ts';

/** What the help of all commands begins with. */
const FIRST_STEPS = [
  'serve',
  'run people --wait',
  'webhooks subscribe people https://example.com/hook',
  'jobs list --state failed',
];
/** Of a noun: as many as show what it is about. */
const EXAMPLES_OF_A_NOUN = 4;
/** Where nothing is known of the terminal. */
const WIDTH = 80;

/** To be called when the commands have been added. */
export function finishCommands(program: Command): void {
  for (const { path, command } of leavesOf(program)) {
    const has = (flag: string) => command.options.some(({ long }) => long === flag);
    if (!has('--quiet')) command.option('--quiet', 'print only data and errors');
    const examples = EXAMPLES[path] ?? [];
    addExamples(command, examples);
    // Whoever has left something out sees what it looks like.
    if (examples[0] !== undefined) {
      command.showHelpAfterError(`For example: ${wholeExample(examples[0])}\n(--help tells the rest)`);
    }
    wrapNotes(command);
    command.addHelpText('after', '\nExit codes: flowhook help exit-codes');
  }
  for (const noun of program.commands.filter(({ commands }) => commands.length > 0)) {
    const verbs = leavesOf(noun, noun.name()).flatMap(({ path }) => (EXAMPLES[path] ?? []).slice(0, 1));
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

function addExamples(command: Command, examples: readonly string[]): void {
  if (examples.length === 0) return;
  const lines = examples.map((example) => `  ${continued(wholeExample(example))}`);
  command.addHelpText('before', `Examples:\n${lines.join('\n')}\n`);
}

/** An example as one types it. */
export function wholeExample(example: string): string {
  return /(?:^| )flowhook /.test(example) ? example : `flowhook ${example}`;
}

/** A long one goes on below, as a shell reads it. */
function continued(example: string): string {
  const at = example.lastIndexOf(' --', WIDTH - ' \\'.length);
  if (example.length + '  '.length <= WIDTH || at < 0) return example;
  return `${example.slice(0, at)} \\\n      ${continued(example.slice(at + 1))}`;
}

/** What a command adds to its help is broken at the edge of the terminal, as commander breaks the rest. */
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

/** The commands that do something, with their names: `jobs list`. */
export function leavesOf(command: Command, path = ''): { path: string; command: Command }[] {
  return command.commands
    .filter((one) => one.name() !== 'exit-codes')
    .flatMap((one) => {
      const name = path === '' ? one.name() : `${path} ${one.name()}`;
      return one.commands.length > 0 ? leavesOf(one, name) : [{ path: name, command: one }];
    });
}
