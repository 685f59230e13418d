/** `flowhook completion`: prints a shell script that completes commands, flags and values. */
import type { Option } from 'commander';
import type { Command } from '../command.ts';
import { type Options, oneOf } from '../options.ts';

const SHELLS = ['bash', 'zsh', 'fish'] as const;

/** @param program must already contain every other command */
export function addCompletion(program: Command): void {
  program
    .command('completion')
    .description('print a completion script for a shell')
    .withExamples(
      'completion bash >> ~/.bashrc',
      'completion zsh > ~/.zfunc/_flowhook',
      'completion fish > ~/.config/fish/completions/flowhook.fish',
    )
    .argument('<shell>', SHELLS.join(', '))
    .addHelpText('after', WHERE)
    .action((name: string, _options: Options) => {
      const shell = oneOf('The shell', name, SHELLS);
      process.stdout.write({ bash, zsh, fish }[shell](placesOf(program)));
    });
}

const WHERE = `
For zsh, add this line to ~/.zshrc before compinit is called:
  fpath=(~/.zfunc $fpath); autoload -Uz compinit; compinit`;

function placesOf(program: Command): Place[] {
  const all = placesBelow(program, []);
  const top = all[0]?.commands ?? [];
  const help = { name: 'help', description: 'display help for a command' };
  return [
    ...all.map((place) => (place.path === '' ? { ...place, commands: [...top, help] } : place)),
    { path: 'help', commands: top, flags: [], argument: [] },
  ];
}

function placesBelow(command: Command, path: readonly string[]): Place[] {
  const shown = command.commands.filter((one) => one.name() !== 'exit-codes');
  const place: Place = {
    path: path.join('/'),
    commands: shown.map((one) => ({ name: one.name(), description: sentence(one.description()) })),
    flags: [
      ...command.options.filter(({ hidden }) => !hidden).flatMap((option) => flagOf(option, command)),
      { name: '--help', description: 'display help for command' },
    ],
    argument: argumentOf(command),
  };
  return [place, ...shown.flatMap((one) => placesBelow(one, [...path, one.name()]))];
}

function flagOf(option: Option, command: Command): Place['flags'] {
  if (option.long === undefined || option.long === null) return [];
  const flag = { name: option.long, description: sentence(option.description) };
  if (!option.required) return [flag];
  const isFile = /<(file|directory)>/.test(option.flags);
  return [{ ...flag, value: isFile ? 'files' : (command.values.get(flag.name) ?? []) }];
}

function argumentOf(command: Command): Words {
  if (command.name() === 'completion') return SHELLS;
  return command.registeredArguments.some((one) => /^files?$/.test(one.name())) ? 'files' : [];
}

function sentence(text: string): string {
  return text.split('\n')[0] ?? '';
}

/** The values that shell completion offers: either a list of words, or the names of files. */
export type Words = 'files' | readonly string[];

interface Named {
  name: string;
  description: string;
}

/** A command with its subcommands, flags and argument. */
export interface Place {
  /** The names of the command, joined by slashes: `jobs/list`. The path '' is the program itself. */
  path: string;
  commands: readonly Named[];
  /** `value` is missing for flags that take no value. */
  flags: readonly (Named & { value?: Words })[];
  argument: Words;
}

export function bash(places: readonly Place[]): string {
  const cases = places.map(({ path, commands, flags, argument }) => {
    const words = commands.length > 0 ? commands.map(({ name }) => name) : argument;
    const named = flags.map(({ name }) => name).join(' ');
    return `    '${path}') words='${words === 'files' ? '<files>' : words.join(' ')}' flags='${named}' ;;`;
  });
  return `# Completions of flowhook for bash.
_flowhook() {
  local current="\${COMP_WORDS[COMP_CWORD]}" command='' word words='' flags=''
  local commands=' ${paths(places)} '
  for word in "\${COMP_WORDS[@]:1:COMP_CWORD-1}"; do
    case "$commands" in *" $command$word/ "*) command="$command$word/" ;; esac
  done
  case "\${command%/}" in
${cases.join('\n')}
  esac
  case "$current" in -*) words="$flags" ;; esac
  case "$command$word" in
${valueCases(places, (words) => `words='${words === 'files' ? '<files>' : words.join(' ')}'`)}
  esac
  if [[ $words == '<files>' ]]; then
    local IFS=$'\\n'
    compopt -o filenames 2> /dev/null
    COMPREPLY=($(compgen -f -- "$current"))
  else
    COMPREPLY=($(compgen -W "$words" -- "$current"))
  fi
}
complete -F _flowhook flowhook
`;
}

export function zsh(places: readonly Place[]): string {
  const described = (all: readonly Named[]) =>
    all
      .map(({ name, description }) => quoted(`${name}:${description.replaceAll(/[\\:]/g, '\\$&')}`))
      .join(' ');
  const offer = (words: Words) =>
    words === 'files' ? '_files' : words.length === 0 ? ':' : `compadd -- ${words.join(' ')}`;
  const cases = places.map(({ path, commands, flags, argument }) => {
    const rest = commands.length > 0 ? `choices=(${described(commands)})` : `rest='${offer(argument)}'`;
    return `    '${path}') flags=(${described(flags)}); ${rest} ;;`;
  });
  return `#compdef flowhook
# Completions of flowhook for zsh.
_flowhook() {
  local command='' word rest=''
  local -a choices flags
  local known=' ${paths(places)} '
  for word in "\${(@)words[2,CURRENT-1]}"; do
    [[ $known == *" $command$word/ "* ]] && command="$command$word/"
  done
  case "$command$word" in
${valueCases(places, (words) => `${offer(words)}; return`)}
  esac
  case "\${command%/}" in
${cases.join('\n')}
  esac
  if [[ $PREFIX == -* ]]; then
    _describe -o 'flag' flags
  elif [[ -n $rest ]]; then
    \${=rest}
  else
    _describe 'command' choices
  fi
}
# zsh runs a file in fpath as the function itself. A sourced file must register the function.
if [[ $funcstack[1] == _flowhook ]]; then _flowhook "$@"; else compdef _flowhook flowhook; fi
`;
}

export function fish(places: readonly Place[]): string {
  const lines = places.flatMap(({ path, commands, flags, argument }) => {
    const line = (what: string, description?: string) =>
      `complete -c flowhook -n '__flowhook_at "${path}"' ${what}${description === undefined ? '' : ` -d ${quoted(description)}`}`;
    return [
      ...commands.map(({ name, description }) => line(`-a ${name}`, description)),
      ...flags.map(({ name, description, value }) =>
        line(`-l ${name.slice(2)}${value === undefined ? '' : fishWords(value, '-r -F', '-x')}`, description),
      ),
      ...(commands.length > 0 || argument.length === 0 ? [] : [line(fishWords(argument, '-F', '').trim())]),
    ];
  });
  return `# Completions of flowhook for fish.
set -g __flowhook_commands ${paths(places)}

function __flowhook_at
    set -l command ''
    for word in (commandline -opc)[2..-1]
        contains -- $command$word/ $__flowhook_commands; and set command $command$word/
    end
    test (string trim -r -c / -- "$command") = $argv[1]
end

complete -c flowhook -f
${lines.join('\n')}
`;
}

function fishWords(words: Words, files: string, others: string): string {
  if (words === 'files') return ` ${files}`;
  return ` ${others}${words.length === 0 ? '' : ` -a ${quoted(words.join(' '))}`}`;
}

/** Returns the paths of all commands. The completion script treats any other word as an argument. */
function paths(places: readonly Place[]): string {
  return places.flatMap(({ path }) => (path === '' ? [] : [`${path}/`])).join(' ');
}

/**
 * Returns the branches of a shell `case` that complete the values of flags. Flags with the same values share a branch.
 */
function valueCases(places: readonly Place[], action: (words: Words) => string): string {
  const cases = new Map<string, string[]>();
  for (const { path, flags } of places) {
    for (const { name, value } of flags) {
      if (value === undefined) continue;
      const act = action(value);
      cases.set(act, [...(cases.get(act) ?? []), `${path}/${name}`]);
    }
  }
  return [...cases].map(([act, names]) => `    ${names.join('|')}) ${act} ;;`).join('\n');
}

/** Quotes the text as a single word for a shell. */
function quoted(text: string): string {
  return `'${text.replaceAll("'", "'\\''")}'`;
}
