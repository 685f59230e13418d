/** Erasing a person: planted everywhere, then searched for in every byte of the data directory and in every table. */
import assert from 'node:assert/strict';
import { existsSync } from 'node:fs';
import { readdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { test } from 'node:test';
import {
  ada,
  attempted,
  CRM_ID,
  dataOf,
  EMAIL,
  ended,
  filesWith,
  flowhook,
  ID,
  other,
  plant,
  startWorld,
  versionsOf,
} from '../support/records/person-everywhere.ts';
import { tablesWith } from '../support/records/tables-with.ts';
import { onPostgres } from '../support/test-database.ts';
import { until } from '../support/until.ts';

test('a person who was everywhere is nowhere in the data directory, and everyone else is unchanged', async (t) => {
  const world = await startWorld(t);
  const { service, received } = world;
  await plant(world);
  const data = join(service.directory, 'data');
  const representations = join(data, 'representations');
  assert.ok((await filesWith(data, [EMAIL])).length > 0);
  if (onPostgres()) assert.ok((await tablesWith(service.database.url, [EMAIL])).includes('record'));
  assert.ok(existsSync(representations) && (await readdir(representations)).length > 0, 'no body was cached');
  const before = await dataOf(service, 'people');
  const etag = (await service.call('HEAD', '/v1/workflows/people/data')).headers.get('etag');
  const eventsBefore = await service.store.events.list({
    teamId: service.team.id,
    afterSequence: 0,
    limit: 1_000,
  });

  // A dry run finds the same and changes nothing.
  const dry = await flowhook(world, [
    'data',
    'erase',
    '--team',
    'default',
    '--email',
    EMAIL.toLowerCase(),
    '--dry-run',
    '--json',
  ]);
  assert.equal(dry.code, 0, dry.stderr);
  const dryReport = JSON.parse(dry.stdout) as { found: object[]; disk: null };
  assert.equal(dryReport.disk, null);
  assert.deepEqual(await dataOf(service, 'people'), before);
  assert.deepEqual(
    await service.store.events.list({ teamId: service.team.id, afterSequence: 0, limit: 1_000 }),
    eventsBefore,
  );

  await writeFile(join(data, 'flowhook.db.v1.2020-01-01T000000.000Z.backup'), 'an older copy');
  const erased = await flowhook(world, [
    'data',
    'erase',
    '--team',
    'default',
    '--email',
    EMAIL.toLowerCase(),
    '--yes',
    '--json',
  ]);
  assert.equal(erased.code, 0, erased.stderr);
  const report = JSON.parse(erased.stdout);
  assert.deepEqual(report.found, dryReport.found);
  const places = new Set((report.found as { place: string }[]).map(({ place }) => place));
  assert.deepEqual([...places].sort(), [
    'attemptDetails',
    'event',
    'jobError',
    'jobLog',
    'profile',
    'record',
    'response',
    'state',
  ]);
  assert.deepEqual(report.left, []);
  // PostgreSQL's files, log and replicas cannot be searched from here.
  assert.deepEqual(
    [report.disk.logEmptied, report.disk.tracesLeft],
    onPostgres() ? [null, null] : [true, false],
  );
  assert.equal(report.backups.length, 1);

  // No byte of the person is left while the server is running.
  const traces = [EMAIL, ID, CRM_ID, 'Ada King', 'Ada Lovelace', 'countess'];
  assert.deepEqual(await filesWith(data, traces), []);
  if (onPostgres()) assert.deepEqual(await tablesWith(service.database.url, traces), []);

  // Everyone else is in every version, and totals are correct.
  assert.deepEqual(
    await dataOf(service, 'people'),
    before.filter(({ id }) => id !== ID),
  );
  assert.notEqual((await service.call('HEAD', '/v1/workflows/people/data')).headers.get('etag'), etag);
  const versions = await versionsOf(service, 'people');
  assert.equal(versions.length, 4);
  for (const { version, total } of versions) {
    assert.equal((await dataOf(service, 'people', `?version=${version}`)).length, total);
    assert.equal(total, version === 3 ? 299 : 300);
  }
  assert.deepEqual(await dataOf(service, 'crm'), [other(1)]);

  // Events keep their order and facts.
  const events = await service.store.events.list({ teamId: service.team.id, afterSequence: 0, limit: 1_000 });
  assert.deepEqual(
    events.map(({ id, type }) => [id, type]),
    eventsBefore.map(({ id, type }) => [id, type]),
  );
  for (const event of events) {
    const was = eventsBefore.find(({ id }) => id === event.id)?.body as string;
    if (event.body === was) continue;
    const [is, had] = [JSON.parse(event.body), JSON.parse(was)];
    assert.deepEqual(Object.keys(is), Object.keys(had));
    if (event.type === 'workflow_data_change') assert.equal(is.data.truncated, true);
  }
  const failed = events.find(({ type }) => type === 'workflow_failed');
  assert.match(JSON.parse(failed?.body as string).data.error, /\[erased\]/);

  // Waiting deliveries are sent without the person.
  const sent = received.length;
  world.advance(3_600_000);
  await until('the deliveries have arrived', () => received.length > sent + 3);
  for (const body of received.slice(sent)) assert.doesNotMatch(body, /lovelace/i);

  // The module can still use the state.
  assert.equal((await world.job('module')).state, 'finished');

  const { lines } = await service.store.audit.list({
    teamId: service.team.id,
    action: 'records.erase',
    limit: 10,
  });
  const line = lines.at(-1);
  assert.equal(line?.author.kind, 'command');
  assert.match(line?.subject ?? '', /^[0-9a-f]{64}$/);
  assert.doesNotMatch(JSON.stringify(line), /lovelace/i);
});

test('a suppressed person does not reappear, and a second erasure is harmless', async (t) => {
  const world = await startWorld(t);
  const { service, write, job } = world;
  await write('people', [other(1), ada, other(2)]);
  await job('people');
  await attempted(service);
  const erase = (body: object) => service.call('POST', '/v1/workflows/people/erase', body);
  const first = await erase({ email: ` ${EMAIL.toUpperCase()} `, suppress: true });
  assert.equal(first.status, 200, JSON.stringify(first.body));
  const report = first.body as { found: object[]; suppressed: boolean };
  assert.ok(report.found.length > 0 && report.suppressed);
  const again = (await erase({ email: EMAIL, suppress: true })).body as { found: object[] };
  assert.deepEqual(again.found, []);

  // Neither with the address, nor with the id and another address.
  await write('people', [
    { ...ada, id: 'another-id' },
    other(1),
    { ...ada, email: 'new@example.com' },
    other(3),
  ]);
  assert.equal((await job('people')).state, 'finished');
  assert.deepEqual(
    (await dataOf(service, 'people')).map(({ id }) => id),
    ['other-1', 'other-3'],
  );
  // Other workflows and teams are not affected.
  await write('crm', [{ id: CRM_ID, email: EMAIL }]);
  await job('crm');
  assert.equal((await dataOf(service, 'crm')).length, 1);
});

test('a run that is running when a person is suppressed does not bring them back', async (t) => {
  const world = await startWorld(t);
  const { service, write, sources } = world;
  await write('crm', [other(1)]);
  const queued = await service.call('POST', '/v1/workflows/waits/queue');
  const jobId = queued.headers.get('x-job-id') as string;
  const job = () => service.store.jobs.get({ teamId: service.team.id, id: jobId });
  // The first attempt is running and waits for the gate: it started without a suppression.
  await until('the run has started', () => existsSync(join(sources, 'started')));
  const erased = await service.call('POST', '/v1/workflows/waits/erase', { email: EMAIL, suppress: true });
  assert.equal(erased.status, 200);
  await write('late', [ada, other(2)]);
  await writeFile(join(sources, 'gate'), '');
  assert.equal((await ended(service, jobId)).state, 'finished');
  assert.equal((await job())?.attempt, 2);
  assert.deepEqual(
    (await dataOf(service, 'waits')).map(({ id }) => id),
    ['other-2'],
  );
});

test('other teams keep their data, and a key needs the scope admin', async (t) => {
  const world = await startWorld(t);
  const { service, write, job } = world;
  const { stdout } = await flowhook(world, [
    'keys',
    'create',
    '--team',
    'else',
    '--scopes',
    'read,queue',
    '--json',
  ]);
  const { key } = JSON.parse(stdout) as { key: string };
  await write('people', [ada]);
  await write('others', [ada]);
  await job('people');
  await job('people', key);
  const erased = await service.call('POST', '/v1/workflows/people/erase', { id: ID });
  assert.equal(erased.status, 200);
  assert.deepEqual(await dataOf(service, 'people'), []);
  const theirs = await service.call('GET', '/v1/workflows/people/data', undefined, { 'x-api-key': key });
  assert.deepEqual(theirs.body, [ada]);
  const refused = await service.call('POST', '/v1/workflows/people/erase', { id: ID }, { 'x-api-key': key });
  assert.equal(refused.status, 403);
});

test('mentions in other records are reported and stay, and invalid requests are rejected', async (t) => {
  const { service, write, job } = await startWorld(t);
  await write('people', [ada, { ...other(1), note: `ask ${EMAIL}` }, { ...other(2), email: `not.${EMAIL}` }]);
  await job('people');
  const erase = (body: unknown) => service.call('POST', '/v1/workflows/people/erase', body);
  const { body } = await erase({ email: EMAIL });
  assert.deepEqual((body as { left: object[] }).left, [{ workflowId: 'people', place: 'record', count: 1 }]);
  assert.equal((await dataOf(service, 'people')).length, 2);
  for (const bad of [
    {},
    { email: EMAIL, id: ID },
    { email: ' ' },
    { email: 7 },
    { email: '2' },
    { email: 'ada@' },
    { email: EMAIL, dryRun: 'yes' },
  ]) {
    assert.equal((await erase(bad)).status, 400, JSON.stringify(bad));
  }
  assert.equal((await service.call('POST', '/v1/workflows/nothing/erase', { email: EMAIL })).status, 404);
});

test('an export contains everything about the person and nothing about others', async (t) => {
  const world = await startWorld(t);
  await plant(world);
  const { code, stdout } = await flowhook(world, ['data', 'export', '--email', EMAIL.toLowerCase()]);
  assert.equal(code, 0);
  const entries = stdout
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line) as Record<string, unknown>);
  const count = (place: string) => entries.filter((entry) => entry.place === place).length;
  assert.equal(count('record'), 5);
  assert.ok(count('event') >= 4 && count('response') >= 4 && count('state') === 1 && count('jobError') === 1);
  assert.deepEqual(
    entries
      .filter(({ place, workflowId }) => place === 'record' && workflowId === 'people')
      .map(({ record }) => record),
    [ada, { ...ada, name: 'Ada King' }, { ...ada, email: EMAIL.toUpperCase() }],
  );
  assert.doesNotMatch(JSON.stringify(entries.filter(({ place }) => place === 'event')), /other\.\d/);
});

test('a body cached before an erasure is not sent after it', async (t) => {
  const { service, write, job } = await startWorld(t);
  const large = { ...other(1), pad: 'x'.repeat(300_000) };
  await write('people', [ada, large]);
  await job('people');
  const read = async () => {
    const answer = await fetch(`${service.url}/v1/workflows/people/data`, {
      headers: { 'x-api-key': service.key, 'accept-encoding': 'gzip' },
    });
    return answer.json() as Promise<unknown[]>;
  };
  assert.equal((await read()).length, 2);
  assert.equal((await read()).length, 2);
  await service.call('POST', '/v1/workflows/people/erase', { email: EMAIL });
  assert.deepEqual(await read(), [large]);
  assert.deepEqual(await read(), [large]);
});
