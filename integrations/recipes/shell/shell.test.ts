/** The shell recipes, as cron would run them. */
import assert from 'node:assert/strict';
import { readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { inPath } from '../../../test/support/in-path.ts';
import { PEOPLE, program, type Service, startService } from '../service.ts';

const missing = ['curl', 'jq'].filter((name) => inPath(name) === undefined);
const options = { skip: missing.length > 0 && `not installed here: ${missing.join(', ')}` };
let service: Service;
before(async () => {
  service = await startService();
});
after(() => service?.stop());

const run = (script: string, args: string[], environment?: Record<string, string>) =>
  program(['sh', join(import.meta.dirname, script), ...args], service, environment);

test('a workflow is run to its end, and the job is printed', options, async () => {
  const { status, output, errors } = await run('run-workflow.sh', ['people']);
  assert.equal(status, 0, errors);
  const job = JSON.parse(output);
  assert.equal(job.state, 'finished');
  assert.equal(job.records.total, PEOPLE.length);
});

test('a failed job causes exit code 1, with its reason on standard error', options, async () => {
  const { status, errors } = await run('run-workflow.sh', ['broken']);
  assert.equal(status, 1);
  assert.match(errors, /failed: .*the disk is full/s);
});

test('waits for an unfinished job, up to a time limit', options, async () => {
  const first = await run('run-workflow.sh', ['held'], { FLOWHOOK_WITHIN: '0' });
  assert.equal(first.status, 7, first.errors);
  const job = /job_\w+/.exec(first.errors)?.[0] ?? 'no job';
  const second = await run('run-workflow.sh', ['held'], { FLOWHOOK_WITHIN: '0' });
  assert.equal(second.status, 7, second.errors);
  assert.ok(second.errors.includes(`There is already a job; waiting for it: ${job}`), second.errors);
  await service.open();
  const third = await run('run-workflow.sh', ['held']);
  assert.equal(third.status, 0, third.errors);
});

test(
  'a wrong name, a wrong key, a closed port and wrong usage have exit codes of their own',
  options,
  async () => {
    const wrong = await Promise.all([
      run('run-workflow.sh', ['unknown?/../people']),
      run('run-workflow.sh', ['people'], { FLOWHOOK_KEY: 'no-such-key' }),
      run('run-workflow.sh', ['people'], { FLOWHOOK_URL: 'http://127.0.0.1:1', FLOWHOOK_RETRIES: '0' }),
      run('run-workflow.sh', []),
      run('download.sh', ['unknown', 'unknown.json']),
      run('changes.sh', ['people', 'wrong.state'], { FLOWHOOK_KEY: 'no-such-key' }),
    ]);
    assert.deepEqual(
      wrong.map(({ status }) => status),
      [3, 4, 6, 2, 3, 4],
      JSON.stringify(wrong),
    );
    const left = (await readdir(service.directory)).filter((name) => /^(unknown|wrong)/.test(name));
    assert.deepEqual(left, [], 'what fails leaves no file behind');
  },
);

test('a file is downloaded only if it has changed, in any format', options, async () => {
  await service.run();
  const file = join(service.directory, 'people.csv');
  assert.equal((await run('download.sh', ['people', 'people.csv'])).status, 0);
  assert.match(await readFile(file, 'utf8'), /^id,name,email\r\n1,Ada Lovelace,ada@example.com\r\n/);
  await writeFile(file, 'kept');
  assert.equal((await run('download.sh', ['people', 'people.csv'])).status, 8);
  assert.equal(await readFile(file, 'utf8'), 'kept');

  await rm(file);
  assert.equal(
    (await run('download.sh', ['people', 'people.csv'])).status,
    0,
    'a file that is gone comes again',
  );
  assert.equal((await run('download.sh', ['people', 'people.json'])).status, 0);
  assert.deepEqual(JSON.parse(await readFile(join(service.directory, 'people.json'), 'utf8')), PEOPLE);
  const left = (await readdir(service.directory)).filter((name) => /^people\.(json|csv)\../.test(name));
  assert.deepEqual(left.sort(), ['people.csv.etag', 'people.json.etag']);
});

test('each change is printed once, and all records after a restart', options, async () => {
  await service.run();
  const changes = async () => {
    const { status, output, errors } = await run('changes.sh', ['people', 'people.state']);
    assert.equal(status, 0, errors);
    return output
      .split('\n')
      .filter(Boolean)
      .map((line) => JSON.parse(line));
  };
  assert.deepEqual(
    (await changes()).map(({ type, id }) => [type, id]),
    [
      ['added', '1'],
      ['added', '2'],
      ['added', '3'],
    ],
  );
  assert.deepEqual(await changes(), []);
  const [ada, grace] = PEOPLE;
  assert.ok(ada && grace);
  await service.publishNext([{ ...ada, name: 'Ada King' }, grace]);
  await service.run();
  assert.deepEqual(
    (await changes()).map(({ type, id, fields }) => [type, id, fields.length]),
    [
      ['changed', '1', 1],
      ['removed', '3', 3],
    ],
  );
  await writeFile(join(service.directory, 'people.state'), '99');
  assert.deepEqual(
    (await changes()).map(({ type, id }) => [type, id]),
    [
      ['restart', undefined],
      ['added', '2'],
      ['added', '1'],
    ],
  );
});
