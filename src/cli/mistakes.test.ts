/** The mistakes of a new user: each error has the next step. */
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { BIN, runCommand } from '../../test/support/cli/commands.ts';
import { startService, type TestService } from '../../test/support/service.ts';

let service: TestService;
let directory: string;

before(async () => {
  directory = await mkdtemp(join(tmpdir(), 'flowhook-new-'));
  service = await startService({ workflows: { 'default/people.yaml': 'source: { type: push }\n' } });
});
after(async () => {
  await service.stop();
  await rm(directory, { recursive: true, force: true });
});

/** Runs a command in an empty directory. */
function flowhook(args: string[], environment: Record<string, string> = {}) {
  return runCommand(args, { directory, environment });
}

for (const { mistake, args, code, says } of [
  {
    mistake: 'an invalid key',
    args: () => ['jobs', 'list', '--url', service.url, '--key', 'wrong'],
    code: 4,
    says: /rejected the API key\. Pass a valid one with --key .*`flowhook login`.*`flowhook keys create`/,
  },
  {
    mistake: 'an invalid key of listen',
    args: () => [
      'webhooks',
      'listen',
      '--url',
      service.url,
      '--key',
      'wrong',
      '--forward-to',
      'http://127.0.0.1:9/',
    ],
    code: 4,
    says: /rejected the API key\. Pass a valid one with --key/,
  },
  {
    mistake: 'no key',
    args: () => ['jobs', 'list', '--url', service.url],
    code: 2,
    says: /--key or FLOWHOOK_KEY/,
  },
  {
    mistake: 'a server that is not running',
    args: () => ['jobs', 'list', '--url', 'http://127.0.0.1:9', '--key', 'k'],
    code: 6,
    says: /cannot be reached.*`flowhook serve`, or correct --url/,
  },
  {
    mistake: 'a path after the server address',
    args: () => ['jobs', 'list', '--url', `${service.url}/api`, '--key', service.key],
    code: 3,
    says: /path does not exist on the server\. Pass only the server address with --url/,
  },
  {
    mistake: 'a version that was never published',
    args: () => ['data', 'get', 'people', '--at', '9', '--data', join(service.directory, 'data')],
    code: 3,
    says: /No such version: 9 was never published, nothing has been published yet\. Omit --at to read the newest/,
  },
  {
    mistake: 'a missing argument',
    args: () => ['webhooks', 'subscribe'],
    code: 2,
    says: /The destination is missing: pass a URL, or --mail, --slack, --discord or --teams/,
  },
  {
    mistake: 'a URL without http://',
    args: () => [
      'webhooks',
      'subscribe',
      'people',
      'localhost:9000',
      '--data',
      join(service.directory, 'data'),
    ],
    code: 2,
    says: /The URL "localhost:9000" must be an absolute http:\/\/ or https:\/\/ URL.* Did you mean http:\/\/localhost:9000\?/,
  },
  {
    mistake: 'a workflow that does not exist',
    args: () => ['run', 'peple', '--url', service.url, '--key', service.key],
    code: 3,
    says: /No workflow/,
  },
  {
    mistake: 'a workflow of a team that is not the team of the key',
    args: () => ['run', 'acme/people', '--url', service.url, '--key', service.key],
    code: 2,
    says: /"acme\/people" is a workflow of the team acme, but the API key belongs to the team default\n$/,
  },
  {
    mistake: 'a workflow of a team that does not exist',
    args: () => ['run', 'acme/people', '--data', join(service.directory, 'data')],
    code: 3,
    says: /^flowhook: No team "acme" found\. Choose one of: default\n$/,
  },
  {
    mistake: 'a key without a team',
    args: () => ['keys', 'create'],
    code: 2,
    says: /--team is missing: .*`--team default`/,
  },
  {
    mistake: 'a directory without a database',
    args: () => ['jobs', 'list'],
    code: 3,
    says: /There is no database .*--data or FLOWHOOK_DATA.*`flowhook serve`/,
  },
  {
    mistake: 'a directory without workflows',
    args: () => ['apply'],
    code: 1,
    says: /The workflows directory .* does not exist\. Create it, or set another directory/,
  },
]) {
  test(`${mistake}: the error has the next step, and nothing is created`, async () => {
    const ended = await flowhook(args());
    assert.equal(ended.code, code, ended.stderr);
    assert.equal(ended.stdout, '');
    assert.match(ended.stderr, says);
    assert.equal(existsSync(join(directory, 'data')), false);
  });
}

test('a name that a URL cannot contain is not found, on a database and on a server', async () => {
  const on = {
    database: ['--data', join(service.directory, 'data')],
    server: ['--url', service.url, '--key', service.key],
  };
  for (const [where, flags] of Object.entries(on)) {
    for (const [kind, ...args] of [
      ['workflow', 'workflows', 'show', '..'],
      ['workflow', 'data', 'get', ''],
      ['job', 'jobs', 'show', '.'],
      ['webhook', 'webhooks', 'show', 'wh_'],
      ['delivery', 'webhooks', 'delivery', '..'],
    ] as const) {
      const { code, stderr } = await flowhook([...args, ...flags]);
      assert.equal(code, 3, `${args.join(' ')} on a ${where}: ${stderr}`);
      assert.ok(stderr.includes(`No ${kind} "${args.at(-1)}" found.`), stderr);
    }
  }
});

test('the error for a key that lacks a scope names the scope', async () => {
  const made = await service.call('POST', '/v1/keys', { scopes: ['queue'] });
  const { apiKey } = made.body as { apiKey: string };
  const { code, stderr } = await flowhook(['jobs', 'list', '--url', service.url, '--key', apiKey]);
  assert.equal(code, 4);
  assert.match(stderr, /scope.*read/);
});

test('an invalid database URL and an unreadable settings file are one line each', async () => {
  const { code, stderr } = await flowhook(['jobs', 'list'], { FLOWHOOK_DATABASE: 'mysql://x' });
  assert.equal(code, 2);
  assert.match(stderr, /FLOWHOOK_DATABASE must be of the form sqlite:.* or postgres:/);
  await writeFile(join(directory, 'flowhook.yaml'), 'port: [\n');
  const broken = await flowhook(['serve']);
  await rm(join(directory, 'flowhook.yaml'));
  assert.equal(broken.code, 2);
  assert.match(broken.stderr, /^ {2}flowhook\.yaml cannot be read: .* at line 2, column 1\n$/m);
});

test('a reader that stops early is not an error', () => {
  for (const command of ['--help', 'completion fish']) {
    const output = execFileSync(
      'bash',
      ['-c', `set -o pipefail; "$0" "$1" ${command} 2>&1 | :`, process.execPath, BIN],
      {
        cwd: directory,
        encoding: 'utf8',
      },
    );
    assert.equal(output, '', command);
  }
});

test('output that is not a terminal has no colors, even with FORCE_COLOR', async () => {
  for (const environment of [{ FORCE_COLOR: '1' }, { NO_COLOR: '1', FORCE_COLOR: '1' }]) {
    for (const args of [['--help'], ['jobs', '--help'], ['jobs', 'lst'], ['run', '--help']]) {
      const { stdout, stderr } = await flowhook(args, environment);
      assert.equal((stdout + stderr).includes('\u001b['), false, args.join(' '));
    }
  }
});
