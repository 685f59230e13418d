/** Generates the reference of all commands from commander's definitions. */
import type { EventEmitter } from 'node:events';
import type { Option } from 'commander';
import type { Command } from '../../src/cli/command.ts';
import { EXIT_CODES } from '../../src/cli/exit.ts';
import { leavesOf, wholeExample } from '../../src/cli/help.ts';
import { SETTINGS } from '../../src/config/settings.ts';
import { flagName } from '../../src/config/sources.ts';
import { programOf } from '../../src/main.ts';
import { table } from './table.ts';

const HEAD = `# Commands

Every command of \`flowhook\`: arguments, flags, exit codes and typical calls. Generated from the commands;
\`flowhook COMMAND --help\` prints the same.

Data goes to standard output, messages go to standard error. \`<argument>\` is required, \`[argument]\` is optional,
\`…\` may be repeated. In a clone of the repository, type \`npx flowhook\`.
`;

/** An option that this many commands share is described only once. */
const COMMON = 6;
/** The maximum line length of notes, in characters. */
const WIDTH = 100;

/** @returns the content of `docs/reference/cli.md` */
export async function cliReference(): Promise<string> {
  const program = await programOf(undefined);
  const leaves = leavesOf(program);
  const isSetting = (option: Option) => SETTINGS.some(({ name }) => flagName(name) === option.long);
  const uses = new Map<string, number>();
  for (const option of leaves.flatMap(({ command }) => command.options)) {
    uses.set(idOf(option), (uses.get(idOf(option)) ?? 0) + 1);
  }
  const isCommon = (option: Option) => (uses.get(idOf(option)) ?? 0) >= COMMON;
  const common = leaves
    .flatMap(({ command }) => command.options)
    .filter(isCommon)
    .filter((option, at, all) => all.findIndex((other) => idOf(other) === idOf(option)) === at);

  const section = ({ path, command }: { path: string; command: Command }): string => {
    const isOfServe = path === 'serve';
    const own = command.options.filter((option) => !isCommon(option) && !(isOfServe && isSetting(option)));
    const shared = command.options.filter((option) => isCommon(option) && !(isOfServe && isSetting(option)));
    const taken = [
      ...command.registeredArguments.map((one) => [`\`${nameOf(one)}\``, one.description]),
      ...own.map(({ flags, description }) => [`\`${flags}\``, description]),
    ];
    const names = command.registeredArguments.map((one) => ` ${nameOf(one)}`).join('');
    return [
      `### flowhook ${path}`,
      `\`flowhook ${path}${names} [options]\`: ${command.description()}.`,
      taken.length === 0 ? '' : table(['Argument or option', 'Description'], taken),
      isOfServe ? 'Every [setting](settings.md) except secrets is also an option.' : '',
      shared.length === 0 ? '' : `Also: ${shared.map(({ long }) => `\`${long}\``).join(', ')}.`,
      textBlock(command.examples.map(wholeExample).join('\n')),
      textBlock(notesOf(command)),
    ]
      .filter((part) => part !== '')
      .join('\n\n');
  };

  const groups = Map.groupBy(leaves, ({ path }) => (path.includes(' ') ? path.replace(/ .*/, '') : ''));
  return `${[
    HEAD,
    '## Common options\n',
    `${table(
      ['Option', 'Description'],
      common.map(({ flags, description }) => [`\`${flags}\``, description]),
    )}\n`,
    '## Exit codes\n',
    `${table(
      ['Code', 'Meaning'],
      EXIT_CODES.map(([code, meaning]) => [String(code), meaning]),
    )}\n`,
    ...[...groups].map(([noun, of]) =>
      [`## ${noun === '' ? 'Single commands' : `flowhook ${noun}`}`, ...of.map(section), ''].join('\n\n'),
    ),
  ]
    .join('\n')
    .trimEnd()}\n`;
}

function idOf({ flags, description }: Option): string {
  return `${flags} ${description}`;
}

function nameOf(argument: Command['registeredArguments'][number]): string {
  const name = argument.variadic ? `${argument.name()}…` : argument.name();
  return argument.required ? `<${name}>` : `[${name}]`;
}

/** The notes below the options in the help of a command, without the line about exit codes. */
function notesOf(command: Command): string {
  let text = '';
  command.configureOutput({ getOutHelpWidth: () => WIDTH });
  (command as unknown as EventEmitter).emit('afterHelp', {
    error: false,
    command,
    write: (part: string) => {
      text += part;
    },
  });
  return text.replace(/^Exit codes: flowhook help exit-codes$/m, '').trim();
}

function textBlock(text: string): string {
  return text === '' ? '' : `\`\`\`text\n${text}\n\`\`\``;
}
