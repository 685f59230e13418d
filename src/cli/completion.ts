/** `flowhook completion bash|zsh|fish`: what a shell needs to complete commands and flags. */
import type { Command } from 'commander';
import { oneOf } from './find.ts';
import type { Options } from './settings.ts';

const SHELLS = ['bash', 'zsh', 'fish'] as const;

/** @param program with every command in it */
export function addCompletion(program: Command): void {
  program
    .command('completion')
    .description('print the completions of a shell, to be put where it looks for them')
    .argument('<shell>', SHELLS.join(', '))
    .action((name: string, _options: Options) => {
      const shell = oneOf('The shell', name, SHELLS);
      const nodes = nodesOf(program, []);
      process.stdout.write({ bash, zsh, fish }[shell](nodes));
    });
}

/** A command with what may follow it. */
interface Node {
  path: readonly string[];
  commands: { name: string; description: string }[];
  flags: { long: string; description: string }[];
}

function nodesOf(command: Command, path: readonly string[]): Node[] {
  const shown = command.commands.filter((one) => one.name() !== 'exit-codes');
  const node: Node = {
    path,
    commands: shown.map((one) => ({ name: one.name(), description: one.description() })),
    flags: [
      ...command.options.flatMap(({ long, description, hidden }) =>
        long === undefined || long === null || hidden ? [] : [{ long, description }],
      ),
      { long: '--help', description: 'display help for command' },
    ],
  };
  return [node, ...shown.flatMap((one) => nodesOf(one, [...path, one.name()]))];
}

/** The words so far that are no flags name the command; after it come its commands and flags, else files. */
function bash(nodes: readonly Node[]): string {
  const cases = nodes.map(
    ({ path, commands, flags }) =>
      `    '${path.join(' ')}') words='${[...commands.map(({ name }) => name), ...flags.map(({ long }) => long)].join(' ')}' ;;`,
  );
  return `# Completions of flowhook for bash.
_flowhook() {
  local current="\${COMP_WORDS[COMP_CWORD]}" command='' word words=''
  for word in "\${COMP_WORDS[@]:1:COMP_CWORD-1}"; do
    case "$word" in -*) continue ;; esac
    case " ${names(nodes)} " in *" \${command:+$command/}$word "*) command="\${command:+$command/}$word" ;; esac
  done
  case "\${command//\\// }" in
${cases.join('\n')}
  esac
  COMPREPLY=($(compgen -W "$words" -- "$current"))
}
complete -o default -F _flowhook flowhook
`;
}

function zsh(nodes: readonly Node[]): string {
  const cases = nodes.map(({ path, commands, flags }) => {
    const all = [
      ...commands.map(({ name, description }) => [name, description] as const),
      ...flags.map(({ long, description }) => [long, description] as const),
    ];
    const words = all.map(([name, description]) =>
      quoted(`${name}:${oneSentence(description).replaceAll(':', '\\:')}`),
    );
    return `    '${path.join(' ')}') choices=(${words.join(' ')}) ;;`;
  });
  return `#compdef flowhook
_flowhook() {
  local command='' word
  local -a said choices
  said=("\${(@)words[2,CURRENT-1]}")
  for word in $said; do
    [[ $word == -* ]] && continue
    [[ " ${names(nodes)} " == *" \${command:+$command/}$word "* ]] && command="\${command:+$command/}$word"
  done
  case "\${command//\\// }" in
${cases.join('\n')}
  esac
  _describe 'flowhook' choices || _files
}
compdef _flowhook flowhook
`;
}

function fish(nodes: readonly Node[]): string {
  const lines = nodes.flatMap(({ path, commands, flags }) => {
    const seen = path.map((name) => `__fish_seen_subcommand_from ${name}`);
    const unseen =
      commands.length === 0
        ? []
        : [`not __fish_seen_subcommand_from ${commands.map(({ name }) => name).join(' ')}`];
    const when = [...seen, ...unseen].join('; and ') || 'true';
    const line = (what: string, description: string) =>
      `complete -c flowhook -n ${quoted(when)} ${what} -d ${quoted(oneSentence(description))}`;
    return [
      ...commands.map(({ name, description }) => line(`-f -a ${name}`, description)),
      ...flags.map(({ long, description }) => line(`-l ${long.slice(2)}`, description)),
    ];
  });
  return `# Completions of flowhook for fish.\n${lines.join('\n')}\n`;
}

/** Every path of commands, with slashes: what is none of these is an argument. */
function names(nodes: readonly Node[]): string {
  return nodes.flatMap(({ path }) => (path.length === 0 ? [] : [path.join('/')])).join(' ');
}

function oneSentence(text: string): string {
  return text.split('\n')[0] ?? '';
}

/** As one word of a shell. */
function quoted(text: string): string {
  return `'${text.replaceAll("'", "'\\''")}'`;
}
