/** `flowhook run`, `jobs` and `workflows` as separate processes, with and without a server. */
import assert from 'node:assert/strict';
import { existsSync, readFileSync } from 'node:fs';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import type { Ended } from '../support/cli/commands.ts';
import { makePlace as makePlaceWith } from '../support/cli/place.ts';
import { startServerProcess } from '../support/server-process.ts';

const shell = (script: string) => `source: { type: command, command: [sh, -c, '${script}'] }\n`;
const WORKFLOWS = {
  'default/people.yaml': `name: People\nschedule: { cron: "0 6 * * 1-5", timezone: Europe/Berlin }\n${shell('echo first words >&2; printf "%s\\n" "{\\"id\\":1,\\"name\\":\\"Ada\\"}" "{\\"id\\":2,\\"name\\":\\"Grace\\"}"')}`,
  'default/broken.yaml': `retries: { max: 0 }\n${shell('echo no such host >&2; exit 7')}`,
  'default/slow.yaml': `limits: { timeout: 100ms }\n${shell('exec sleep 600')}`,
  'default/held.yaml': shell('echo $$ > pid; echo "{\\"id\\":1}"; echo started >&2; exec sleep 600'),
  'default/pushed.yaml': 'source: { type: push }\n',
};

const makePlace = (t: TestContext, apply = true) => makePlaceWith(t, WORKFLOWS, apply);

test('without a server a job runs in the process of the command, and its outcome is the exit code', async (t) => {
  const place = await makePlace(t);
  const ran = await place.run('run', 'people', '--logs');
  assert.equal(ran.code, 0, ran.stderr);
  assert.match(ran.stdout, /^people version 1: 2 records, 2 added, 0 changed, 0 removed \(.+\)\n$/);
  assert.match(ran.stderr, /No server is running on this database/);
  assert.match(ran.stderr, /Z info +first words\n/);

  const broken = await place.run('run', 'default/broken', '--json');
  const job = JSON.parse(broken.stdout) as Record<string, unknown>;
  assert.deepEqual([broken.code, job.state, job.reason, job.origin], [1, 'failed', 'error', 'cli']);
  assert.match(
    broken.stderr,
    new RegExp(`Job ${job.id} failed \\(error\\): .*7[\\s\\S]*jobs logs ${job.id}`),
  );
  const slow = await place.run('run', 'slow');
  assert.deepEqual([slow.code, slow.stdout], [7, '']);
  assert.match(slow.stderr, /failed \(timeout\): .*`limits\.timeout`/);

  const [listed, logs, asJson, shown, workflows, showing] = await Promise.all([
    place.run('jobs', 'list', '--state', 'failed', '--json'),
    place.run('jobs', 'logs', String(job.id)),
    place.run('jobs', 'logs', String(job.id), '--json'),
    place.run('jobs', 'show', String(job.id)),
    place.run('workflows', 'list'),
    place.run('workflows', 'show', 'people'),
  ]);
  const jobs = JSON.parse(listed.stdout) as Record<string, unknown>[];
  assert.deepEqual(
    jobs.map(({ team, workflowId, state }) => [team, workflowId, state]),
    [
      ['default', 'slow', 'failed'],
      ['default', 'broken', 'failed'],
    ],
  );
  assert.match(logs.stdout, /Z \w+ +no such host\n/);
  const lines = asJson.stdout.trim().split('\n');
  assert.ok(lines.some((line) => (JSON.parse(line) as { text: string }).text === 'no such host'));
  assert.match(shown.stdout, /^state +failed$/m);
  assert.match(shown.stdout, /^error +.*7/m);
  assert.match(workflows.stdout, /^default\/people +command +version 1, 2 records +finished .* ago/m);
  const people = showing.stdout;
  assert.match(people, /^schedule +cron 0 6 \* \* 1-5 \(Europe\/Berlin\)$/m);
  assert.match(people, /^next run +\w{3} \d+ \w{3} \d{4}, 06:00 Europe\/Berlin, in /m);
});

test('with a server a job is queued and followed; Ctrl-C leaves it running, and cancel ends it', async (t) => {
  const place = await makePlace(t);
  const server = await startServerProcess(place.environment);
  t.after(() => server.kill());
  const waited = await place.run('run', 'people', '--wait', '--json');
  assert.equal(waited.code, 0, waited.stderr);
  assert.equal((JSON.parse(waited.stdout) as Record<string, unknown>).version, 1);
  assert.doesNotMatch(waited.stderr, /No server/);

  const held = place.start('run', 'held', '--wait', '--logs');
  await held.says(/started/);
  const conflict = await place.run('run', 'held');
  assert.equal(conflict.code, 5);
  const id = /(job_\w+) \(running\)/.exec(conflict.stderr)?.[1] ?? '';
  held.process.kill('SIGINT');
  const left = await held.ended;
  assert.equal(left.code, 130);
  assert.match(
    left.stderr,
    new RegExp(`The job has not ended yet. Follow it with \`flowhook jobs watch ${id}\``),
  );

  const watching = place.start('jobs', 'watch', id, '--json');
  const following = place.start('jobs', 'logs', id, '--follow');
  await watching.says(/running/);
  const canceled = await place.run('jobs', 'cancel', id);
  assert.deepEqual([canceled.code, canceled.stdout], [0, `canceling ${id}\n`]);
  const watched = await watching.ended;
  assert.equal(watched.code, 1);
  assert.equal((JSON.parse(watched.stdout) as Record<string, unknown>).state, 'canceled');
  assert.match(watched.stderr, /was canceled: Canceled at the command line/);
  const followed = await following.ended;
  assert.equal(followed.code, 0);
  assert.match(followed.stdout, /started/);

  const again = await place.run('jobs', 'rerun', id);
  const next = again.stdout.trim();
  assert.match(next, /^job_\w+$/);
  const early = await place.run('jobs', 'run-now', id);
  assert.equal(early.code, 5);
  assert.match(early.stderr, /is not waiting: it was canceled/);
  assert.equal((await place.run('jobs', 'cancel', next)).code, 0);

  while ((await place.run('jobs', 'list', '--state', 'queued,running')).stdout !== '');
  const late = await place.run('run', 'held', '--timeout', '50ms');
  assert.deepEqual([late.code, /The job has not ended yet/.test(late.stderr)], [7, true], late.stderr);
  const there = ['--url', server.url, '--key', place.environment.FLOWHOOK_BOOTSTRAP_KEY ?? ''];
  const continued = /jobs watch (job_\w+)/.exec(late.stderr)?.[1] ?? '';
  assert.equal((await place.run('jobs', 'cancel', continued, ...there)).code, 0);
  while ((await place.run('jobs', 'list', '--state', 'queued,running')).stdout !== '');
  const lateThere = await place.run('run', 'held', '--timeout', '50ms', ...there);
  assert.deepEqual([lateThere.code, /The job has not ended yet/.test(lateThere.stderr)], [7, true]);
  assert.match(
    (await place.run('run', 'held', '--timeout', '5')).stderr,
    /--timeout must be a duration such as 30s/,
  );

  assert.equal((await place.run('workflows', 'pause', 'people')).stdout, 'paused people\n');
  const paused = await place.run('run', 'people');
  assert.equal(paused.code, 5);
  assert.match(
    paused.stderr,
    /This workflow is paused\. To resume it, run `flowhook workflows resume people`/,
  );
  assert.match((await place.run('workflows', 'list')).stdout, /default\/people .*Berlin\), paused for \d/);
  assert.match(
    (await place.run('workflows', 'resume', 'people')).stdout,
    /^resumed people, cron 0 6 .*, in /,
  );
});

test('Ctrl-C cancels a job that runs in the process of the command, and ends its children', async (t) => {
  const place = await makePlace(t);
  const held = place.start('run', 'held', '--logs', '--json');
  await held.says(/started/);
  held.process.kill('SIGINT');
  const { code, stdout, stderr } = await held.ended;
  const job = JSON.parse(stdout) as Record<string, unknown>;
  assert.deepEqual([code, job.state], [130, 'canceled'], stderr);
  assert.match(String(job.error), /interrupted/);
  const pid = Number(readFileSync(join(place.directory, 'workflows/default/pid'), 'utf8'));
  assert.throws(() => process.kill(pid, 0), { code: 'ESRCH' });
  assert.equal((await place.run('data', 'get', 'held')).stdout, '');
});

test('--timeout cancels a job that runs in the process of the command', async (t) => {
  const place = await makePlace(t);
  const { code, stdout, stderr } = await place.run('run', 'held', '--timeout', '300ms', '--json');
  assert.deepEqual([code, (JSON.parse(stdout) as Record<string, unknown>).state], [7, 'canceled'], stderr);
  assert.match(stderr, /its --timeout expired/);
});

test('workflows test runs a file without a database, and compares records with published ones', async (t) => {
  const place = await makePlace(t, false);
  const file = 'workflows/default/people.yaml';
  const first = await place.run('workflows', 'test', file, '--json');
  assert.equal(first.code, 0, first.stderr);
  const tried = JSON.parse(first.stdout) as Record<string, never>;
  assert.deepEqual(tried.records, [
    { id: '1', name: 'Ada' },
    { id: '2', name: 'Grace' },
  ]);
  assert.match(first.stderr, /There is no database[\s\S]*first words/);
  assert.equal(existsSync(join(place.directory, 'data')), false);

  await place.run('apply');
  await place.run('run', 'people');
  const changed = ['{"id":1,"name":"Ada L."}', '{"name":"Nobody"}', '{"id":3}', '{"id":3}'];
  await writeFile(
    join(place.directory, file),
    `onInvalid: skip\nexpect: { fields: { nam: { type: text } } }\nsource: { type: command, command: [printf, '%s\\n', ${changed.map((one) => `'${one}'`).join(', ')}] }\n`,
  );
  const second = await place.run('workflows', 'test', file);
  assert.equal(second.code, 0, second.stderr);
  assert.match(second.stdout, /^records +4 records in .*, 1 invalid, 1 with a duplicate id$/m);
  assert.match(second.stdout, /^invalid +record 2: the field `id`/m);
  assert.match(second.stdout, /^not checked +No record has the field `nam`.*Did you mean `name`\?$/m);
  assert.match(
    second.stdout,
    /^would change +1 added, 1 changed, 0 unchanged, 1 removed \(compared with version 1\)$/m,
  );
  assert.match(second.stdout, /changed 1: name "Ada" → "Ada L\."/);
  assert.match(second.stdout, /removed 2: name "Grace"/);
  assert.match(second.stdout, /^time .*to the first line.*producing.*checking.*total$/m);
  const kept = await place.run('data', 'get', 'people');
  assert.equal(kept.stdout, '{"id":"1","name":"Ada"}\n{"id":"2","name":"Grace"}\n');

  await writeFile(
    join(place.directory, file),
    `expect: { records: { drop: 10% } }\n${shell('echo "{\\"id\\":1}"')}`,
  );
  const [guarded, failing, push] = await Promise.all([
    place.run('workflows', 'test', file),
    place.run('workflows', 'test', 'workflows/default/slow.yaml'),
    place.run('workflows', 'test', 'workflows/default/pushed.yaml'),
  ]);
  assert.equal(guarded.code, 1);
  assert.match(guarded.stdout, /would fail \(guard\): .*records\.drop/);
  assert.equal(failing.code, 7);
  assert.match(failing.stdout, /would fail \(timeout\): .*`limits\.timeout`/);
  assert.equal(push.code, 2);
  assert.match(push.stderr, /receives its records by push/);

  const held = place.start('workflows', 'test', 'workflows/default/held.yaml');
  await held.says(/started/);
  held.process.kill('SIGINT');
  const interrupted = await held.ended;
  assert.equal(interrupted.code, 130);
  assert.match(interrupted.stdout, /Interrupted: the source was stopped/);
  const pid = Number(readFileSync(join(place.directory, 'workflows/default/pid'), 'utf8'));
  assert.throws(() => process.kill(pid, 0), { code: 'ESRCH' });
});

test('validate lists every mistake with its file and line, without a database', async (t) => {
  const place = await makePlace(t, false);
  const good = await place.run('workflows', 'validate');
  assert.deepEqual(good, { code: 0, stdout: '', stderr: '5 files, no mistakes\n' });
  await writeFile(
    join(place.directory, 'workflows/default/wrong.yaml'),
    'mod: replace\nlimits: { timeout: 5 }\n',
  );
  const all = await place.run('workflows', 'validate');
  assert.equal(all.code, 1);
  assert.match(all.stdout, /^workflows\/default\/wrong\.yaml:1: .*Did you mean `mode`/m);
  assert.match(all.stdout, /^workflows\/default\/wrong\.yaml:2: `limits\.timeout` must be a duration/m);
  assert.match(all.stderr, /^6 files, 3 mistakes\n$/);
  const some = await place.run(
    'workflows',
    'validate',
    'workflows/default/wrong.yaml',
    'nothing.yaml',
    '--json',
  );
  assert.equal(some.code, 1);
  const { mistakes } = JSON.parse(some.stdout) as { mistakes: { file: string; message: string }[] };
  assert.deepEqual(mistakes.at(-1), { file: 'nothing.yaml', line: null, message: 'There is no such file' });
  assert.equal(existsSync(join(place.directory, 'data')), false);
});

test('every mistake has an exit code, and the error suggests a correction', async (t) => {
  const place = await makePlace(t);
  const ran = JSON.parse((await place.run('run', 'people', '--json')).stdout) as { id: string };
  const typo = `${ran.id.slice(0, -1)}${ran.id.endsWith('0') ? '1' : '0'}`;
  const cases: [args: string[], code: number, sentence: RegExp][] = [
    [['run', 'peple'], 3, /No workflow "peple" found. Did you mean "people"\?/],
    [['run', 'zzz'], 3, /Choose one of: broken, held, people, pushed, slow\. .*flowhook apply/],
    [['run', 'pushed'], 2, /receives its records by push/],
    [['run', 'people', '--team', 'defalt'], 3, /No team "defalt" found. Did you mean "default"\?/],
    [['jobs', 'show', typo], 3, new RegExp(`No job "${typo}" found. Did you mean ${ran.id}\\?`)],
    [['jobs', 'show', 'people'], 3, /"people" is a workflow, not a job. .*jobs list --workflow people/],
    [['jobs', 'list', '--state', 'runing'], 2, /--state must be one of queued.*Did you mean running\?/],
    [['jobs', 'list', '--origin', 'cron'], 2, /--origin must be one of api, schedule, cli, push/],
    [['jobs', 'list', '--limit', '0'], 2, /--limit must be a whole number from 1 to 1000/],
    [['jobs', 'logs', ran.id, '--attempt', 'x'], 2, /--attempt must be a whole number/],
    [['jobs', 'cancel', ran.id], 5, /already ended: it finished at/],
    [['workflows', 'pause', 'peopel'], 3, /Did you mean "people"\?/],
    [['workflows', 'test', 'workflows/default/nothing.yaml'], 2, /nothing\.yaml: There is no such file/],
  ];
  const ended = await Promise.all(cases.map(([args]) => place.run(...args)));
  for (const [at, [args, code, sentence]] of cases.entries()) {
    const one = ended[at] as Ended;
    assert.deepEqual([args, one.code, one.stdout], [args, code, ''], one.stderr);
    assert.match(one.stderr, sentence);
    assert.doesNotMatch(one.stderr, /\n {4}at /);
  }
});
