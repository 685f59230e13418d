/** Completions in each installed shell, as after the key Tab. */
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, test } from 'node:test';
import { runCommand } from '../../test/support/cli/commands.ts';
import { inPath } from '../../test/support/in-path.ts';
import { programOf } from '../main.ts';
import { DELIVERY_STATES } from '../model/delivery.ts';
import { JOB_STATES } from '../model/job.ts';
import { leavesOf } from './help.ts';

const directory = mkdtempSync(join(tmpdir(), 'flowhook-completion-'));
after(() => rmSync(directory, { recursive: true, force: true }));
const program = await programOf(undefined);

/** Returns the completions of a shell at the end of a line. */
type Ask = (line: string) => string[];

async function scriptOf(shell: string): Promise<string> {
  return (await runCommand(['completion', shell], { directory })).stdout;
}

function run(shell: string, args: string[]): string[] {
  const text = execFileSync(shell, args, {
    cwd: join(directory, 'place'),
    env: { PATH: `${join(directory, 'bin')}:${process.env.PATH}`, HOME: directory, TERM: 'dumb' },
    encoding: 'utf8',
    timeout: 120_000,
  });
  return text.split('\n').filter((line) => line !== '');
}

const SHELLS: Record<string, () => Promise<Ask>> = {
  bash: async () => {
    writeFileSync(join(directory, 'flowhook.bash'), await scriptOf('bash'));
    const asked = `source ../flowhook.bash; COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _flowhook; printf '%s\\n' "\${COMPREPLY[@]}"`;
    return (line) => run('bash', ['-c', asked, 'bash', ...line.split(' ')]);
  },
  zsh: async () => {
    mkdirSync(join(directory, 'zfunc'));
    writeFileSync(join(directory, 'zfunc', '_flowhook'), await scriptOf('zsh'));
    writeFileSync(join(directory, 'setup.zsh'), ZSH_SETUP);
    return (line) => {
      writeFileSync(join(directory, 'offered'), '');
      run('zsh', ['-f', '-c', ZSH_TERMINAL, 'zsh', directory, line]);
      return readFileSync(join(directory, 'offered'), 'utf8')
        .split('\n')
        .filter((one) => one !== '');
    };
  },
  fish: async () => {
    mkdirSync(join(directory, '.config/fish/completions'), { recursive: true });
    writeFileSync(join(directory, '.config/fish/completions/flowhook.fish'), await scriptOf('fish'));
    return (line) =>
      run('fish', ['-c', 'complete -C $argv[1]', line]).map((one) => one.split('\t')[0]?.trim() ?? '');
  },
};

/** zsh completes only in a terminal: this opens one and types the line and Tab. */
const ZSH_TERMINAL = `
zmodload zsh/zpty
zpty terminal zsh -f -i
zpty -w terminal "source $1/setup.zsh $1"
zpty -r terminal ignored '*ready*ready*'
zpty -w -n terminal "$2"$'\\t'
while zpty -r terminal ignored; do :; done
`;
/** Records all completions, and then ends the shell. */
const ZSH_SETUP = `
PS1=
fpath=($1/zfunc $fpath)
autoload -Uz compinit
compinit -u -d $1/dump
bindkey '^I' complete-word
compadd() {
  if [[ " \${@[1,(i)(-|--)]} " == *" -"[a-zA-Z]#[OAD]" "* ]]; then builtin compadd "$@"; return $?; fi
  local -a offered
  builtin compadd -A offered "$@"
  print -rl -- $offered >> ${'$'}HOME/offered
  builtin compadd "$@"
}
comppostfuncs=(exit)
setopt extendedglob
print re""ady; print re""ady
`;

// fish completes only programs that exist.
mkdirSync(join(directory, 'bin'));
writeFileSync(join(directory, 'bin', 'flowhook'), '', { mode: 0o755 });
mkdirSync(join(directory, 'place'));
writeFileSync(join(directory, 'place', 'people.yaml'), '');

for (const [shell, prepare] of Object.entries(SHELLS)) {
  test(`${shell} completes commands, flags, values and files`, {
    skip: inPath(shell) === undefined && `${shell} is not in PATH`,
  }, async () => {
    const ask = await prepare();
    const sorted = (line: string) => [...new Set(ask(line))].sort();
    assert.deepEqual(sorted('flowhook webh'), ['webhooks']);
    assert.deepEqual(sorted('flowhook webhooks p'), ['pause']);
    assert.deepEqual(sorted('flowhook keys '), ['create', 'list', 'revoke']);
    assert.deepEqual(sorted('flowhook jobs run'), ['run-now']);
    assert.deepEqual(sorted('flowhook help key'), ['keys']);
    assert.deepEqual(sorted('flowhook completion '), ['bash', 'fish', 'zsh']);
    // Flags are completed for the command, also after arguments that have the name of a command.
    assert.deepEqual(sorted('flowhook jobs list --sta'), ['--state']);
    assert.deepEqual(sorted('flowhook jobs list --limit 3 --wo'), ['--workflow']);
    assert.deepEqual(sorted('flowhook jobs show list --sta'), []);
    assert.deepEqual(sorted('flowhook webhooks delivery keys --bo'), ['--body']);
    assert.deepEqual(sorted('flowhook --ver'), ['--version']);
    // Values are completed for each command.
    assert.deepEqual(sorted('flowhook jobs list --state '), [...JOB_STATES].sort());
    assert.deepEqual(sorted('flowhook webhooks deliveries x --state '), [...DELIVERY_STATES].sort());
    assert.deepEqual(sorted('flowhook data import --format nd'), ['ndjson']);
    // Files are completed only where the command takes a file.
    assert.deepEqual(sorted('flowhook workflows test pe'), ['people.yaml']);
    assert.deepEqual(sorted('flowhook workflows new --out pe'), ['people.yaml']);
    assert.deepEqual(sorted('flowhook data get pe'), []);
    assert.deepEqual(sorted('flowhook jobs list --workflow pe'), []);
  });
}

test('every completed value belongs to a flag', () => {
  for (const { path, command } of leavesOf(program)) {
    for (const flag of command.values.keys()) {
      assert.ok(
        command.options.some(({ long }) => long === flag),
        `${path} ${flag}`,
      );
    }
  }
});

test('the script of every shell contains every command', async () => {
  for (const shell of ['bash', 'zsh', 'fish']) {
    const script = await scriptOf(shell);
    for (const { path } of leavesOf(program)) assert.ok(script.includes(path.replace(' ', '/')), path);
  }
});
