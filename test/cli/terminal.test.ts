/** Control sequences in text from others never reach a terminal. */
import assert from 'node:assert/strict';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { before, test } from 'node:test';
import { runCommand } from '../support/cli/commands.ts';
import { makePlace, type Place } from '../support/cli/place.ts';

const EVIL = '\u001b]0;PWNED\u0007\u001b[2J\u009b31m\u202eevil\u2028x';
/** The escape sequences of the live line, and colors. */
// biome-ignore lint/suspicious/noControlCharactersInRegex: escape sequences begin with one.
const OWN = /\r\u001b\[K|\u001b\[\d+m/g;
/** The files that write to a stream. All others use `terminal.ts`. */
const WRITERS = ['terminal.ts', 'commands/serve.ts', 'commands/completion.ts', 'commands/doctor.ts'];

let place: Place;

before(async (t) => {
  const record = JSON.stringify({ id: EVIL, name: EVIL });
  place = await makePlace(t as never, {
    'default/good.yaml': `name: ${JSON.stringify(EVIL)}\nsource: { type: command, command: [sh, good.sh] }\n`,
    'default/good.sh': `printf '%s\\n' '${record}'\n`,
    'default/bad.yaml': 'retries: { max: 0 }\nsource: { type: command, command: [sh, bad.sh] }\n',
    'default/bad.sh': `echo '${EVIL}' >&2\nexit 1\n`,
  });
});

test('control sequences are removed on a terminal, and kept in a pipe', async () => {
  const onTerminal = (...args: string[]) => runCommand(args, { ...place, terminal: { columns: 120 } });
  assert.equal((await place.run('run', 'good')).code, 0);
  const failed = await onTerminal('run', 'bad', '--wait', '--logs');
  assert.equal(failed.code, 1);
  const [job] = JSON.parse((await place.run('jobs', 'list', '--state', 'failed', '--json')).stdout) as {
    id: string;
  }[];
  const id = job?.id ?? '';
  const outputs = [failed];
  for (const args of [
    ['data', 'get', 'good'],
    ['data', 'get', 'good', '--format', 'csv'],
    ['data', 'get', 'good', '--json'],
    ['data', 'changes', 'good', '--since', '0'],
    ['jobs', 'list'],
    ['jobs', 'show', id],
    ['jobs', 'show', id, '--json'],
    ['jobs', 'logs', id],
    ['workflows', 'list'],
    ['workflows', 'show', 'good'],
    ['workflows', 'show', 'good', '--json'],
    ['workflows', 'test', join(place.environment.FLOWHOOK_WORKFLOWS ?? '', 'default/bad.yaml')],
    ['events', 'list', '--json'],
    ['run', EVIL],
  ]) {
    outputs.push(await onTerminal(...args));
  }
  for (const { stdout, stderr } of outputs) {
    const text = (stdout + stderr).replace(OWN, '');
    assert.doesNotMatch(text, /[^\P{Cc}\t\n]|[\u2028-\u202e]/u, JSON.stringify(text));
  }
  assert.match(outputs.map(({ stdout }) => stdout).join(''), /evil/);
  const piped = await place.run('data', 'get', 'good');
  assert.ok(piped.stdout.includes('\u009b31m\u202eevil'), 'a pipe receives unchanged bytes');
});

test('commands print through terminal.ts, which removes control characters', () => {
  const directory = join(import.meta.dirname, '../../src/cli');
  const writers = readdirSync(directory, { recursive: true, encoding: 'utf8' })
    .filter((name) => name.endsWith('.ts') && !name.endsWith('.test.ts'))
    .filter((name) => /process\.std(?:out|err)\.write\(/.test(readFileSync(join(directory, name), 'utf8')));
  assert.deepEqual(
    writers.filter((name) => !WRITERS.includes(name)),
    [],
  );
});
