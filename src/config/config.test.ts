/** Settings: their sources, and the errors for invalid ones. */
import assert from 'node:assert/strict';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, test } from 'node:test';
import { ConfigError, readConfig } from './config.ts';
import { SETTINGS } from './settings.ts';
import { environmentName, flagName } from './sources.ts';

const directory = await mkdtemp(join(tmpdir(), 'flowhook-config-'));
after(() => rm(directory, { recursive: true, force: true }));
const read = (flags: object, environment: Record<string, string>) =>
  readConfig(flags, environment, directory);

/** The message of the error. */
function mistakes(flags: object, environment: Record<string, string>): string {
  try {
    read(flags, environment);
  } catch (error) {
    assert.ok(error instanceof ConfigError);
    return error.message;
  }
  assert.fail('no setting was rejected');
}

test('by default the service listens on loopback and stores everything below the working directory', () => {
  const config = read({}, {});
  assert.equal(config.host, '127.0.0.1');
  assert.equal(config.port, 8080);
  assert.equal(config.databaseUrl, `sqlite:${join(directory, 'data', 'flowhook.db')}`);
  assert.equal(config.workflowsDirectory, join(directory, 'workflows'));
  assert.equal(config.workflowsNamed, false);
});

test('flags override the environment, which overrides flowhook.yaml, which overrides the defaults', async () => {
  await writeFile(join(directory, 'flowhook.yaml'), 'port: 1\nhost: 127.0.0.9\nlogLevel: warn\n');
  const config = read({ port: '3' }, { FLOWHOOK_PORT: '2', FLOWHOOK_HOST: '127.0.0.8' });
  assert.deepEqual([config.port, config.host, config.logLevel], [3, '127.0.0.8', 'warn']);
  await rm(join(directory, 'flowhook.yaml'));
});

test('a secret can be read from a file that the environment names', async () => {
  await writeFile(join(directory, 'key'), 'a-key-from-a-file-0\n');
  assert.equal(read({}, { FLOWHOOK_BOOTSTRAP_KEY_FILE: 'key' }).bootstrapKey, 'a-key-from-a-file-0');
  assert.match(
    mistakes({}, { FLOWHOOK_BOOTSTRAP_KEY_FILE: 'missing' }),
    /FLOWHOOK_BOOTSTRAP_KEY_FILE.*missing/,
  );
});

test('webhooks may reach private networks by default only if other machines cannot reach the service', () => {
  const allowed = (environment: Record<string, string>) =>
    read({}, environment).allowNetworks.verdict('127.0.0.1').allowed;
  assert.equal(allowed({}), true);
  assert.equal(allowed({ FLOWHOOK_HOST: '0.0.0.0' }), false);
  assert.equal(allowed({ FLOWHOOK_PUBLIC_URL: 'https://hooks.example.com' }), false);
  assert.equal(allowed({ FLOWHOOK_TRUST_PROXY: 'true' }), false);
  assert.equal(allowed({ FLOWHOOK_HOST: '0.0.0.0', FLOWHOOK_ALLOW_NETWORKS: 'loopback' }), true);
});

test('an invalid database URL is rejected, and the error does not quote it', () => {
  const database = (url: string) => mistakes({}, { FLOWHOOK_DATABASE: url });
  for (const [url, said] of [
    ['mysql://me:hidden@x/y', /FLOWHOOK_DATABASE must be of the form sqlite:.* or postgres:/],
    ['postgres://me:hid#den@host/db', /characters of the password|%23/],
    ['postgres://me:hidden@host', /name of a database/],
    ['postgres:///db?password=hidden', /names a host/],
    [
      'postgres://me:hidden@host/db?sslmode=prefer',
      /sslmode is one of disable, require, verify-ca, verify-full/,
    ],
    ['postgres://me:hidden@host/db?sslmode=verify-ca', /sslrootcert/],
  ] as const) {
    assert.match(database(url), said);
    assert.doesNotMatch(database(url), /hid/);
  }
  for (const url of [
    'postgres://me:secret@host:5433/db',
    'postgresql:///db?host=/var/run/postgresql',
    'postgres://me@host/db?sslmode=verify-full&sslrootcert=/etc/ca.pem',
  ]) {
    assert.equal(read({}, { FLOWHOOK_DATABASE: url }).databaseUrl, url);
  }
});

test('a database URL, which may contain a password, can come from a file', async () => {
  await writeFile(join(directory, 'url'), 'postgres://me:secret@host/db\n');
  assert.equal(read({}, { FLOWHOOK_DATABASE_FILE: 'url' }).databaseUrl, 'postgres://me:secret@host/db');
});

test('a node can have a role other than all only on PostgreSQL', () => {
  const FLOWHOOK_DATABASE = 'postgres://host/db';
  assert.equal(read({}, { FLOWHOOK_DATABASE, FLOWHOOK_ROLE: 'worker' }).role, 'worker');
  assert.match(
    mistakes({}, { FLOWHOOK_ROLE: 'worker' }),
    /FLOWHOOK_ROLE must be all on SQLite.*found "worker"/,
  );
  assert.match(
    mistakes({}, { FLOWHOOK_ROLE: 'boss' }),
    /FLOWHOOK_ROLE must be one of all, api, worker, sender/,
  );
  const { databasePool, databaseListen, role } = read({}, { FLOWHOOK_DATABASE_LISTEN: 'off' });
  assert.deepEqual([databasePool, databaseListen, role], [10, false, 'all']);
});

test('an error lists all mistakes by the names that the user wrote, and quotes no secret', async () => {
  await writeFile(join(directory, 'flowhook.yaml'), 'porrt: 1\nmaxRunningJobs: none\n');
  const said = mistakes(
    { port: '99999' },
    {
      FLOWHOOK_BOOTSTRAP_KEY: 'short',
      FLOWHOOK_ENCRYPTION_KEY: 'c2hvcnQ=',
      FLOWHOOK_PUBLIC_URL: 'example.com',
      FLOWHOOK_ALLOW_NETWORKS: 'everything',
      FLOWHOOK_TRUST_PROXY: 'maybe',
    },
  );
  await rm(join(directory, 'flowhook.yaml'));
  for (const named of [
    /"porrt" is not a setting/,
    /--port must be a whole number from 0 to 65535, found "99999"/,
    /flowhook\.yaml: maxRunningJobs must be/,
    /FLOWHOOK_BOOTSTRAP_KEY must be 16 to 256/,
    /FLOWHOOK_ENCRYPTION_KEY must be 32 bytes/,
    /FLOWHOOK_PUBLIC_URL must be an http/,
    /FLOWHOOK_ALLOW_NETWORKS/,
    /FLOWHOOK_TRUST_PROXY must be true, false, or a comma-separated list of loopback/,
  ]) {
    assert.match(said, named);
  }
  assert.ok(!said.includes('short') && !said.includes('c2hvcnQ='));
});

test('invalid URLs and hosts are rejected, and the error masks passwords', () => {
  for (const url of ['https://host:99999', 'http://[', 'https://exa<mple.com']) {
    const said = mistakes({}, { FLOWHOOK_PUBLIC_URL: url });
    assert.ok(
      said.includes(`FLOWHOOK_PUBLIC_URL must be an http:// or https:// URL without a query, found "${url}"`),
    );
  }
  for (const host of ['http://127.0.0.1', '[::1]', '127.0.0.1 ::1']) {
    assert.match(mistakes({}, { FLOWHOOK_HOST: host }), /FLOWHOOK_HOST must be an address or hostname/);
  }
  for (const host of ['::', 'fe80::1%eth0', 'node-1.internal']) {
    assert.equal(read({}, { FLOWHOOK_HOST: host }).host, host);
  }
  const said = mistakes({}, { FLOWHOOK_PUBLIC_URL: 'https://ada:hush@hooks.example.com/?a=1' });
  assert.match(said, /found "https:\/\/ada:\*\*\*@hooks/);
});

test('by default one team may use every job slot', () => {
  const perTeam = (environment: Record<string, string>) => read({}, environment).maxRunningJobsPerTeam;
  assert.equal(perTeam({ FLOWHOOK_MAX_RUNNING_JOBS: '7' }), 7);
  assert.equal(perTeam({ FLOWHOOK_MAX_RUNNING_JOBS: '7', FLOWHOOK_MAX_RUNNING_JOBS_PER_TEAM: '2' }), 2);
  const { keepJobs, keepJobsDays } = read({}, {});
  assert.deepEqual([keepJobs, keepJobsDays], [50, 30]);
  assert.match(mistakes({}, { FLOWHOOK_KEEP_JOBS: '0' }), /FLOWHOOK_KEEP_JOBS must be a whole number from 1/);
});

test('every setting is listed with its value and its source, and secrets are masked', async () => {
  await writeFile(join(directory, 'flowhook.yaml'), 'keepJobs: 7\nlogLevel: warn\n');
  const { settings } = read(
    { port: '9000', logLevel: 'debug' },
    {
      FLOWHOOK_HOST: '127.0.0.2',
      FLOWHOOK_BOOTSTRAP_KEY: 'a-key-that-nobody-sees',
      FLOWHOOK_DATABASE: 'postgres://me:hush@host/db',
    },
  );
  await rm(join(directory, 'flowhook.yaml'));
  const of = (name: string) => {
    const { value, origin, from } = settings.find((one) => one.name === name) ?? {};
    return [value, origin, from];
  };
  assert.equal(settings.length, SETTINGS.length);
  assert.deepEqual(of('port'), ['9000', 'flag', '--port']);
  assert.deepEqual(of('host'), ['127.0.0.2', 'environment', 'FLOWHOOK_HOST']);
  assert.deepEqual(of('keepJobs'), ['7', 'file', 'flowhook.yaml: keepJobs']);
  assert.deepEqual(of('logLevel'), ['debug', 'flag', '--log-level']);
  assert.deepEqual(of('data'), [join(directory, 'data'), 'default', null]);
  assert.deepEqual(of('publicUrl'), [null, 'default', null]);
  assert.deepEqual(of('encryptionKey'), [null, 'default', null]);
  assert.deepEqual(of('bootstrapKey'), ['***', 'environment', 'FLOWHOOK_BOOTSTRAP_KEY']);
  assert.deepEqual(of('database'), ['postgres://me:***@host/db', 'environment', 'FLOWHOOK_DATABASE']);
  const perTeam = of('maxRunningJobsPerTeam')[0];
  assert.equal(perTeam, of('maxRunningJobs')[0]);
  assert.doesNotMatch(JSON.stringify(settings), /nobody-sees|hush/);
});

test('a setting has a name as a variable and as a flag', () => {
  assert.equal(environmentName('publicUrl'), 'FLOWHOOK_PUBLIC_URL');
  assert.equal(flagName('publicUrl'), '--public-url');
});
