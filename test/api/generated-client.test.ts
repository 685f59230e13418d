/**
 * Clients in other languages, generated from `openapi.json` if their generator is installed: they list, queue, read,
 * subscribe and unsubscribe. `sh test/clients.sh` installs the generators.
 */
import assert from 'node:assert/strict';
import { execFile, execFileSync, spawnSync } from 'node:child_process';
import { cpSync, mkdirSync, mkdtempSync, readFileSync, realpathSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { promisify } from 'node:util';
import { inPath } from '../support/in-path.ts';
import { startReceiver } from '../support/receiver.ts';
import { startService } from '../support/service.ts';

const root = join(import.meta.dirname, '../..');
const DOCUMENT = join(root, 'openapi.json');
const FIXTURES = join(import.meta.dirname, '../fixtures', 'generated-client');

/** How to run the program that uses the client. */
interface Program {
  file: string;
  args: string[];
}

/** A directory for the generated client, which is deleted after the test. */
function directoryFor(t: TestContext): string {
  const directory = mkdtempSync(join(tmpdir(), 'flowhook-generated-'));
  t.after(() => rmSync(directory, { recursive: true, force: true }));
  return directory;
}

async function use(t: TestContext, { file, args }: Program): Promise<void> {
  const service = await startService({
    workflows: {
      'default/inbox.yaml': 'source: { type: push }\nmode: upsert\n',
      'default/people.yaml': `source: { type: command, command: [printf, '{"id":1,"name":"Ada","born":1815}\\n{"id":2}\\n'] }\n`,
    },
  });
  const receiver = await startReceiver();
  t.after(async () => {
    await service.stop();
    await receiver.stop();
  });
  const env = {
    ...process.env,
    FLOWHOOK_URL: service.url,
    FLOWHOOK_KEY: service.key,
    RECEIVER_URL: receiver.url,
  };
  const { stdout } = await promisify(execFile)(file, args, { env, timeout: 60_000 });
  assert.deepEqual(JSON.parse(stdout), {
    workflows: [
      ['inbox', 'push', 'upsert'],
      ['people', 'command', 'replace'],
    ],
    subscribed: true,
    listed: [[true, receiver.url, ['workflow_finished']]],
    queued: 'Job queued',
    total: 2,
    job: ['finished', 2, new Date().getUTCFullYear()],
    records: [{ id: '1', name: 'Ada', born: 1815 }, { id: '2' }],
    refusals: ['No workflow found', 'Unauthorized: send a valid API key in the x-api-key header'],
    unsubscribed: true,
    left: 0,
  });
}

const PYTHON = 'openapi-python-client';
test('a client from openapi-python-client lists, queues, reads, subscribes and unsubscribes', {
  skip: inPath(PYTHON) === undefined && `${PYTHON} is not in PATH: sh test/clients.sh`,
}, async (t) => {
  const directory = directoryFor(t);
  const config = join(directory, 'config.yaml');
  writeFileSync(config, 'package_name_override: flowhook_generated\n');
  const output = join(directory, 'flowhook_generated');
  const args = [
    'generate',
    '--path',
    DOCUMENT,
    '--config',
    config,
    '--meta',
    'none',
    '--output-path',
    output,
  ];
  const { status, stdout, stderr } = spawnSync(PYTHON, args, { encoding: 'utf8' });
  assert.equal(status, 0, stderr);
  // It skips content types that it does not support (CSV, NDJSON, YAML), and nothing else.
  const lost = (stdout + stderr).split(/^(?=WARNING )/m).filter((text) => text.startsWith('WARNING '));
  assert.deepEqual(
    lost.filter((text) => !/Unsupported content[ _]type/.test(text)),
    [],
  );
  // The interpreter of the generator has the packages that the generated client needs.
  const [, python = ''] = /^#!(.+)/.exec(readFileSync(realpathSync(inPath(PYTHON) ?? ''), 'utf8')) ?? [];
  cpSync(join(FIXTURES, 'use.py'), join(directory, 'use.py'));
  await use(t, { file: python, args: [join(directory, 'use.py')] });
});

const GO = 'oapi-codegen';
test('a client from oapi-codegen lists, queues, reads, subscribes and unsubscribes', {
  skip:
    (inPath(GO) === undefined || inPath('go') === undefined) &&
    `${GO} and go are not in PATH: sh test/clients.sh`,
}, async (t) => {
  const directory = directoryFor(t);
  cpSync(FIXTURES, directory, { recursive: true });
  mkdirSync(join(directory, 'api'));
  const output = join(directory, 'api', 'api.go');
  execFileSync(GO, ['-generate', 'types,client', '-package', 'api', '-o', output, DOCUMENT]);
  const program = join(directory, 'use');
  // Tests download nothing.
  const env = { ...process.env, GOPROXY: 'off', GOFLAGS: '-mod=mod' };
  if (spawnSync('go', ['mod', 'download'], { cwd: directory, env }).status !== 0) {
    return t.skip('the required Go modules are not installed: sh test/clients.sh');
  }
  execFileSync('go', ['build', '-o', program, '.'], { cwd: directory, env });
  await use(t, { file: program, args: [] });
});
