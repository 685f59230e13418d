/**
 * The completion scripts of each shell. All three read the words so far in the same way: a word that continues the path
 * is a command. They offer, in this order: values after a flag that takes one, flags after a dash, commands or
 * arguments.
 */

/** What can be completed in a place: these words, or files. */
export type Words = 'files' | readonly string[];

interface Named {
  name: string;
  description: string;
}

/** A command, and what may follow it. */
export interface Place {
  /** With slashes; '' is the beginning of the command line. */
  path: string;
  commands: readonly Named[];
  /** `value` is what the flag takes. */
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
# Found in fpath, the file is the function itself; sourced, it has to be made known.
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

/** The paths of all commands: any other word is an argument. */
function paths(places: readonly Place[]): string {
  return places.flatMap(({ path }) => (path === '' ? [] : [`${path}/`])).join(' ');
}

/** The cases for a last word that is a flag with a value; flags with the same values share a case. */
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

/** Quoted as one word for a shell. */
function quoted(text: string): string {
  return `'${text.replaceAll("'", "'\\''")}'`;
}
