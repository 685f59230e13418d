/** Commands from the view of a shell: exit codes, standard output, standard error, and the next step in errors. */
import assert from 'node:assert/strict';
import { existsSync } from 'node:fs';
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import pg from 'pg';
import { runCommand } from '../../test/support/cli/commands.ts';
import { makeDatabase } from '../../test/support/postgres.ts';

function flowhook(directory: string, args: string[], environment: Record<string, string> = {}) {
  return runCommand(args, { directory, environment });
}

async function emptyDirectory(t: TestContext): Promise<string> {
  const directory = await mkdtemp(join(tmpdir(), 'flowhook-cli-'));
  t.after(() => rm(directory, { recursive: true, force: true }));
  return directory;
}

test('commands that only read fail without a database, and do not create one', async (t) => {
  const directory = await emptyDirectory(t);
  for (const args of [
    ['keys', 'list'],
    ['keys', 'revoke', 'key_1'],
    ['webhooks', 'secret', 'wh_1'],
  ]) {
    const { code, stdout, stderr } = await flowhook(directory, args);
    assert.equal(code, 3);
    assert.equal(stdout, '');
    assert.match(stderr, /There is no database .*--data or FLOWHOOK_DATA/);
  }
  assert.equal(existsSync(join(directory, 'data')), false);
});

test('migrate status does not create a database, and migrate up does', async (t) => {
  const directory = await emptyDirectory(t);
  const before = await flowhook(directory, ['migrate', 'status']);
  assert.equal(before.code, 1);
  assert.match(before.stdout, /version 0\. Pending migrations, which `flowhook migrate up` runs: 0001_/);
  const up = await flowhook(directory, ['migrate', 'up', '--json']);
  const { from, to } = JSON.parse(up.stdout) as { from: number; to: number };
  assert.deepEqual([up.code, from], [0, 0]);
  const after = await flowhook(directory, ['migrate', 'status', '--json']);
  assert.deepEqual([after.code, JSON.parse(after.stdout)], [0, { found: to, newest: to, waiting: [] }]);
  assert.match(
    (await flowhook(directory, ['migrate', 'up'])).stdout,
    new RegExp(`already up to date \\(version ${to}\\)`),
  );
});

test('on PostgreSQL commands need the right schema version, and nodes need the same encryption key', async (t) => {
  const directory = await emptyDirectory(t);
  const { url, drop } = await makeDatabase();
  t.after(drop);
  const environment = { FLOWHOOK_DATABASE: url };
  const none = await flowhook(directory, ['jobs', 'list'], environment);
  assert.deepEqual([none.code, /no tables yet.*flowhook migrate up/.test(none.stderr)], [3, true]);
  assert.equal((await flowhook(directory, ['migrate', 'up'], environment)).code, 0);
  assert.equal((await flowhook(directory, ['jobs', 'list'], environment)).code, 0);
  const serve = await flowhook(directory, ['serve', '--port', '0'], environment);
  assert.equal(serve.code, 1);
  assert.match(serve.stderr, /all nodes need the same encryption key: set FLOWHOOK_ENCRYPTION_KEY/);
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  await client.query('insert into schema_version (number, migrated_at) values (9999, 0)');
  await client.end();
  for (const args of [['jobs', 'list'], ['migrate', 'up'], ['serve']]) {
    const { code, stderr } = await flowhook(directory, args, environment);
    assert.equal(code, 1);
    assert.match(stderr, /schema version 9999, and this flowhook knows versions up to/);
  }
});

test('a key goes to standard output and everything else to standard error', async (t) => {
  const directory = await emptyDirectory(t);
  await flowhook(directory, ['teams', 'create', 'acme']);
  const created = await flowhook(directory, ['keys', 'create', '--team', 'acme', '--scopes', 'read,queue']);
  assert.equal(created.code, 0);
  assert.match(created.stdout, /^fh_[\w-]{43}\n$/);
  assert.match(created.stderr, /^Created key_\w+ in team acme\. Save the key .* it is shown only once\n$/);

  const listed = await flowhook(directory, ['keys', 'list', '--json']);
  const [key] = JSON.parse(listed.stdout) as { id: string; team: string; scopes: string[] }[];
  assert.deepEqual([key?.team, key?.scopes], ['acme', ['read', 'queue']]);
  assert.equal(listed.stderr, '');

  const revoked = await flowhook(directory, ['keys', 'revoke', key?.id ?? '', '--yes', '--json']);
  assert.deepEqual(JSON.parse(revoked.stdout), { id: key?.id, revoked: true });
  const unknown = await flowhook(directory, ['keys', 'list', '--team', 'ghost']);
  assert.equal(unknown.code, 3);
  assert.match(unknown.stderr, /No team "ghost" found. Choose one of: acme/);
});

test('a key is created only for an existing team, or for "default"', async (t) => {
  const directory = await emptyDirectory(t);
  const create = (team: string) => flowhook(directory, ['keys', 'create', '--team', team]);
  assert.deepEqual([(await create('acme')).code, existsSync(join(directory, 'data'))], [3, false]);
  const first = await create('default');
  assert.equal(first.code, 0);
  assert.match(first.stderr, /Creating the team "default"/);
  const misspelled = await create('defalt');
  assert.deepEqual([misspelled.code, misspelled.stdout], [3, '']);
  assert.match(
    misspelled.stderr,
    /No team "defalt" found\. Did you mean "default"\? To create the team, run `flowhook teams create defalt`/,
  );
  assert.match((await create('acme')).stderr, /No team "acme" found\. Choose one of: default\. To create/);
  const teams = await flowhook(directory, ['teams', 'list', '--json']);
  assert.deepEqual(
    (JSON.parse(teams.stdout) as { slug: string }[]).map(({ slug }) => slug),
    ['default'],
  );
});

test('the error for a damaged database names its file and the next step', async (t) => {
  const directory = await emptyDirectory(t);
  await mkdir(join(directory, 'data'));
  await writeFile(join(directory, 'data/flowhook.db'), 'no database '.repeat(400));
  for (const args of [
    ['serve', '--port', '0'],
    ['jobs', 'list'],
    ['migrate', 'status'],
    ['backup', 'create'],
  ]) {
    const { code, stdout, stderr } = await flowhook(directory, args);
    assert.deepEqual([args, code, stdout], [args, 1, '']);
    assert.match(
      stderr,
      /database .*data\/flowhook\.db is damaged or not a database: file is not .*`flowhook backup restore/,
    );
  }
});

test('the error for a backup that cannot be written names the directory', async (t) => {
  const directory = await emptyDirectory(t);
  await flowhook(directory, ['keys', 'create', '--team', 'default']);
  await writeFile(join(directory, 'taken'), '');
  const { code, stderr } = await flowhook(directory, ['backup', 'create', '--to', 'taken']);
  assert.equal(code, 1);
  assert.match(stderr, /Backups cannot be written to .*taken: .*set another directory with --to/);
});

test('apply prints changes to standard output, and each mistake once, with its line, to standard error', async (t) => {
  const directory = await emptyDirectory(t);
  await mkdir(join(directory, 'workflows/acme'), { recursive: true });
  const source = 'source: { type: command, command: ["true"] }\n';
  await writeFile(join(directory, 'workflows/acme/good.yaml'), source);
  await writeFile(join(directory, 'workflows/acme/bad.yaml'), `${source}mod: replace\n`);
  const { code, stdout, stderr } = await flowhook(directory, ['apply', '--json']);
  assert.equal(code, 1);
  assert.deepEqual((JSON.parse(stdout) as { created: string[] }).created, ['acme/good']);
  assert.equal(stderr.match(/Did you mean `mode`/g)?.length, 1);
  assert.match(stderr, /Workflows whose file has a mistake were not changed/);
  assert.match(stderr, /^acme\/bad\.yaml:2: /m);
});

test('validate, apply and doctor report a workflow file outside the directories of teams', async (t) => {
  const directory = await emptyDirectory(t);
  await mkdir(join(directory, 'workflows/acme'), { recursive: true });
  const source = 'source: { type: command, command: ["true"] }\n';
  await writeFile(join(directory, 'workflows/acme/good.yaml'), source);
  await writeFile(join(directory, 'workflows/stray.yaml'), source);
  for (const [args, file] of [
    [['workflows', 'validate'], 'workflows/stray.yaml'],
    [['workflows', 'validate', 'workflows/stray.yaml'], 'workflows/stray.yaml'],
    [['apply'], 'stray.yaml'],
  ] as const) {
    const { code, stdout, stderr } = await flowhook(directory, [...args]);
    assert.equal(code, 1, args.join(' '));
    const message = `${file}: This file is not in the folder of a team, so it is not used. Move it to acme/stray.yaml\n`;
    assert.ok((stdout + stderr).includes(message), stdout + stderr);
  }
  const doctor = await flowhook(directory, ['doctor', '--json']);
  const { findings } = JSON.parse(doctor.stdout) as { findings: { check: string; what: string }[] };
  const { what = '' } = findings.find(({ check }) => check === 'workflow-files') ?? {};
  assert.match(what, /^Invalid workflow files: stray\.yaml: .* Move it to acme\/stray\.yaml$/);
});

test('a mistake in the command line exits with code 2', async (t) => {
  const directory = await emptyDirectory(t);
  for (const args of [['serv'], ['serve', '--prot', '1'], ['keys', 'create'], ['serve', '--port', 'x']]) {
    const { code, stdout } = await flowhook(directory, args);
    assert.deepEqual([args, code, stdout], [args, 2, '']);
  }
});

test('serve reports a port in use and a misspelled variable, with the next step', async (t) => {
  const directory = await emptyDirectory(t);
  const other = createServer();
  await new Promise<void>((resolve) => other.listen(0, '127.0.0.1', resolve));
  t.after(() => other.close());
  const { port } = other.address() as { port: number };
  const { code, stderr } = await flowhook(directory, ['serve', '--port', String(port)], {
    FLOWHOOK_PROT: '1',
  });
  assert.equal(code, 5);
  assert.match(stderr, new RegExp(`Port ${port} on 127.0.0.1 is already in use.*--port`));
  assert.match(stderr, /FLOWHOOK_PROT is not a setting .* Did you mean FLOWHOOK_PORT\?/);
  // The first key is shown only once, so a failed start must not create it.
  assert.deepEqual(JSON.parse((await flowhook(directory, ['keys', 'list', '--json'])).stdout), []);
});

test('the error for an unusable data directory names it and the next step', async (t) => {
  const directory = await emptyDirectory(t);
  await writeFile(join(directory, 'data'), 'a file');
  for (const environment of [{}, { FLOWHOOK_DATA: 'data/below' }, { FLOWHOOK_DATA: '/proc/nowhere' }]) {
    const { code, stderr } = await flowhook(directory, ['serve', '--port', '0'], environment);
    assert.equal(code, 1);
    assert.match(stderr, /The data directory .* cannot be used: .*FLOWHOOK_DATA/);
  }
});

test('a missing workflows directory that was set explicitly is an error', async (t) => {
  const directory = await emptyDirectory(t);
  const { code, stderr } = await flowhook(directory, ['serve', '--port', '0', '--workflows', 'nowhere']);
  assert.equal(code, 1);
  assert.match(stderr, /^flowhook: The workflows directory .*nowhere does not exist\. Create it/m);
  assert.equal(stderr.includes('workflows.not_applied'), false);
});

test('teams are created once, and listed with their numbers of workflows and keys', async (t) => {
  const directory = await emptyDirectory(t);
  const made = await flowhook(directory, ['teams', 'create', 'acme']);
  assert.match(made.stdout, /^team_\w+\n$/);
  assert.match(made.stderr, /keys create --team acme/);
  const again = await flowhook(directory, ['teams', 'create', 'acme', '--json']);
  assert.equal((JSON.parse(again.stdout) as { created: boolean }).created, false);
  await flowhook(directory, ['keys', 'create', '--team', 'acme']);
  assert.match((await flowhook(directory, ['teams', 'list'])).stdout, /^acme +0 workflows +1 key /);
  assert.equal((await flowhook(directory, ['teams', 'create', 'A b'])).code, 2);
});

test('config check reports all mistakes in the settings without starting a server', async (t) => {
  const directory = await emptyDirectory(t);
  await writeFile(join(directory, 'flowhook.yaml'), 'keepJobs: many\n');
  const wrong = await flowhook(directory, ['config', 'check', '--port', 'x']);
  assert.equal(wrong.code, 2);
  assert.match(wrong.stderr, /--port must be .*\n.*flowhook\.yaml: keepJobs must be /);
  const json = await flowhook(directory, ['config', 'check', '--port', 'x', '--json']);
  assert.equal(json.code, 2);
  assert.equal(JSON.parse(json.stdout).mistakes.length, 2);
  await rm(join(directory, 'flowhook.yaml'));
  const right = await flowhook(directory, ['config', 'check'], {
    FLOWHOOK_PROT: '1',
    FLOWHOOK_PORT_FILE: 'port',
  });
  assert.equal(right.code, 0);
  assert.match(right.stdout, /FLOWHOOK_PROT is not a setting .* Did you mean FLOWHOOK_PORT\?/);
  assert.match(right.stdout, /FLOWHOOK_PORT_FILE has no effect: only secrets can come from a file/);
  assert.equal(existsSync(join(directory, 'data')), false);
});

test('config print shows every setting with its source, and masks secrets', async (t) => {
  const directory = await emptyDirectory(t);
  await writeFile(join(directory, 'flowhook.yaml'), 'keepJobs: 7\n');
  const environment = { FLOWHOOK_HOST: '127.0.0.2', FLOWHOOK_BOOTSTRAP_KEY: 'nobody-is-shown-this' };
  const args = ['config', 'print', '--show-origin', '--port', '9000'];
  const { code, stdout } = await flowhook(directory, args, environment);
  assert.equal(code, 0);
  assert.match(stdout, /^# Server\n/);
  assert.match(stdout, /^port +9000 +--port$/m);
  assert.match(stdout, /^host +127\.0\.0\.2 +FLOWHOOK_HOST$/m);
  assert.match(stdout, /^keepJobs +7 +flowhook\.yaml: keepJobs$/m);
  assert.match(stdout, /^bootstrapKey +\*\*\* +FLOWHOOK_BOOTSTRAP_KEY$/m);
  assert.match(stdout, /^publicUrl +– +default$/m);
  assert.doesNotMatch(stdout, /shown-this/);
  const printed = JSON.parse((await flowhook(directory, ['config', 'print', '--json'])).stdout);
  assert.deepEqual(printed[1].from, null);
  const wrong = await flowhook(directory, ['config', 'print', '--port', 'x']);
  assert.match(wrong.stderr, /--port must be a whole number/);
  assert.equal(existsSync(join(directory, 'data')), false);
});
