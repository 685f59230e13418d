/**
 * The completions as each shell wants them. All three read the words so far alike: one that continues the path is a
 * command. What a flag waits for comes first, then flags after a dash, then commands or what the command is given.
 */

/** What may stand somewhere: one of these words, or a file. */
export type Words = 'files' | readonly string[];

interface Named {
  name: string;
  description: string;
}

/** A command, and what may come after it. */
export interface Place {
  /** With slashes; '' is where a command line begins. */
  path: string;
  commands: readonly Named[];
  /** `value` is what such a flag wants after it. */
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

/** Every path of commands: what is none of these is an argument. */
function paths(places: readonly Place[]): string {
  return places.flatMap(({ path }) => (path === '' ? [] : [`${path}/`])).join(' ');
}

/** The cases of a last word that is a flag and waits for a value: those with the same words in one, also with none. */
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

/** As one word of a shell. */
function quoted(text: string): string {
  return `'${text.replaceAll("'", "'\\''")}'`;
}
