/** `flowhook init`: its files work unchanged, and existing files are kept. */
import assert from 'node:assert/strict';
import { mkdtemp, readFile, rm, stat, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { parse } from 'yaml';
import { runCommand } from '../../test/support/cli/commands.ts';
import { startServerProcess } from '../../test/support/server-process.ts';
import { commentedSettings } from '../config/commented-file.ts';
import { readConfig } from '../config/config.ts';
import { SETTINGS } from '../config/settings.ts';

const WRITTEN = [
  'flowhook.yaml',
  'workflows/default/hello.yaml',
  '.env.example',
  '.gitignore',
  'compose.yaml',
  'flowhook.service',
];

function flowhook(directory: string, ...args: string[]) {
  return runCommand(args, { directory, environment: { PATH: process.env.PATH ?? '' } });
}

async function emptyDirectory(t: TestContext): Promise<string> {
  const directory = await mkdtemp(join(tmpdir(), 'flowhook-init-'));
  t.after(() => rm(directory, { recursive: true, force: true }));
  return directory;
}

test('a server runs with the files of init, and the example workflow publishes records', async (t) => {
  const directory = await emptyDirectory(t);
  const made = await flowhook(directory, 'init');
  assert.equal(made.code, 0, made.stderr);
  assert.equal(made.stdout, WRITTEN.map((file) => `wrote ${file}\n`).join(''));
  for (const step of ['flowhook serve', 'flowhook run hello --wait', 'flowhook data get hello']) {
    assert.ok(made.stderr.includes(step), step);
  }

  const server = await startServerProcess({}, { directory });
  try {
    // The server loads the file at its start, but waits only a limited time for it.
    assert.equal((await flowhook(directory, 'apply')).code, 0);
    const run = await flowhook(directory, 'run', 'hello', '--wait');
    assert.equal(run.code, 0, run.stderr + server.output());
    const { stdout } = await flowhook(directory, 'data', 'get', 'hello');
    assert.match(stdout, /"Ada"[\s\S]*"Grace"/);
  } finally {
    await server.stop();
  }
});

test('existing files are overwritten only with --force', async (t) => {
  const directory = await emptyDirectory(t);
  const mine = join(directory, 'new', 'flowhook.yaml');
  await flowhook(directory, 'init', 'new');
  await writeFile(mine, 'port: 9000\n');
  await rm(join(directory, 'new', 'compose.yaml'));

  const again = await flowhook(directory, 'init', 'new', '--json');
  const { written, left } = JSON.parse(again.stdout) as { written: string[]; left: string[] };
  assert.deepEqual(written, ['compose.yaml']);
  assert.deepEqual(
    left,
    WRITTEN.filter((file) => file !== 'compose.yaml'),
  );
  assert.match(again.stderr, /--force/);
  assert.equal(await readFile(mine, 'utf8'), 'port: 9000\n');

  const forced = await flowhook(directory, 'init', 'new', '--force');
  assert.doesNotMatch(forced.stdout, /kept/);
  assert.equal(await readFile(mine, 'utf8'), commentedSettings());
});

test('the error for a directory that cannot be written to has the next step', async (t) => {
  const directory = await emptyDirectory(t);
  await writeFile(join(directory, 'file'), '');
  const { code, stderr, stdout } = await flowhook(directory, 'init', 'file');
  assert.deepEqual([code, stdout], [1, '']);
  assert.match(stderr, /flowhook\.yaml cannot be written: .*Choose a directory/);
  assert.equal((await stat(join(directory, 'file'))).size, 0);
  const inProc = await flowhook(directory, 'init', '/proc/nowhere');
  assert.equal(inProc.code, 1);
  assert.match(inProc.stderr, /flowhook\.yaml cannot be written: .*Choose a directory/);
});

test('the unit contains the directory, escaped for systemd', async (t) => {
  const directory = await emptyDirectory(t);
  const { stderr } = await flowhook(directory, 'init', 'a $& 100%');
  assert.match(stderr, /flowhook\.service does not work here: .*cannot access \/.*\/a \$& 100%/);
  const unit = await readFile(join(directory, 'a $& 100%', 'flowhook.service'), 'utf8');
  assert.ok(unit.includes(`WorkingDirectory=${directory}/a $& 100%%\n`));
  assert.ok(unit.includes(`EnvironmentFile=-${directory}/a $& 100%%/.env\n`));
  assert.doesNotMatch(unit, /\/etc\/flowhook/);
});

test('flowhook.yaml sets nothing at first, and is valid with all its settings uncommented', async (t) => {
  const directory = await emptyDirectory(t);
  const file = commentedSettings();
  assert.equal(parse(file), null);

  const taken = file.replaceAll(/^#(?=\w)/gm, '');
  await writeFile(join(directory, 'flowhook.yaml'), taken);
  // If an example is invalid, alone or together with the others, change it in `unset(…, example)`.
  const { settings } = readConfig({}, {}, directory);
  const names: string[] = SETTINGS.filter(({ secret }) => secret !== true).map(({ name }) => name);
  assert.deepEqual(Object.keys(parse(taken) as object), names);
  for (const { name, origin } of settings) {
    assert.equal(origin, names.includes(name) ? 'file' : 'default', name);
  }
  // A setting with a default is written with its default.
  const plain = readConfig({}, {}, join(directory, 'elsewhere')).settings;
  for (const { name, default: preset } of SETTINGS) {
    const value = settings.find((one) => one.name === name)?.value;
    const isPath = value?.startsWith('/') === true;
    if (preset !== undefined && !isPath) assert.equal(value, plain.find((one) => one.name === name)?.value);
  }
});

test('`--notify` creates a webhook that writes to people when something breaks, in the database of the server', async (t) => {
  const directory = await emptyDirectory(t);
  const slack = 'https://hooks.slack.com/services/T0/B0/secret';
  const made = await flowhook(directory, 'init', 'new', '--notify', slack);
  assert.equal(made.code, 0, made.stderr);
  assert.match(made.stderr, /^Subscribed: webhook wh_\w+\. It writes to Slack \(hooks\.slack\.com\)$/m);
  assert.doesNotMatch(made.stderr, /webhooks notify/);
  const listed = await flowhook(join(directory, 'new'), 'webhooks', 'list', '--json');
  const [{ url, format, workflowId, events }] = JSON.parse(listed.stdout);
  assert.deepEqual(
    [url, format, workflowId, events],
    [
      slack,
      'slack',
      null,
      ['workflow_failed', 'workflow_stale', 'workflow_recovered', 'webhook_failing', 'webhook_paused'],
    ],
  );

  const server = await startServerProcess({}, { directory: join(directory, 'new') });
  t.after(() => server.stop());
  assert.match(server.output(), /^key: fh_/m, 'the server prints the first API key all the same');
});

test('`--notify` with an address says how to set up mail first, and a mistake writes no file', async (t) => {
  const directory = await emptyDirectory(t);
  const made = await flowhook(directory, 'init', '--notify', 'ops@example.org');
  assert.equal(made.code, 0, made.stderr);
  assert.match(
    made.stderr,
    /flowhook webhooks notify ops@example\.org +# after setting smtpUrl and mailFrom in flowhook\.yaml/,
  );
  const wrong = await flowhook(directory, 'init', 'other', '--notify', '#ops');
  assert.equal(wrong.code, 2);
  assert.match(wrong.stderr, /The destination must be a mail address or a URL, such as ops@example\.org/);
  await assert.rejects(stat(join(directory, 'other')), { code: 'ENOENT' });
});
