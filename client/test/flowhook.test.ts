/** The client against the real service: calls every route. */
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { routes } from '../../src/http/routes.ts';
import { countUsage } from '../../src/store/conformance/setup.ts';
import { type Receiver, startReceiver } from '../../test/support/receiver.ts';
import { startService, type TestService } from '../../test/support/service.ts';
import {
  Conflict,
  Flowhook,
  type FlowhookError,
  type Job,
  NotFound,
  Unauthorized,
  verifyWebhook,
} from '../src/flowhook-client.ts';

const PEOPLE = `source:
  type: command
  command: [sh, -c, 'echo one line of log >&2; echo ''{"id":1,"name":"Ada","email":"ada@example.com"}''; echo ''{"id":2}''']
`;

let service: TestService;
let receiver: Receiver;
let flowhook: Flowhook;
/** The routes called so far, such as `GET /v1/jobs/{jobId}`. */
const called = new Set<string>();

before(async () => {
  service = await startService({
    workflows: {
      'default/people.yaml': PEOPLE,
      'default/inbox.yaml': 'source: { type: push }\n',
      'default/checked.yaml':
        'source: { type: push }\nexpect: { fields: { price: { min: 0 } }, otherwise: quarantine }\n',
      'default/slow.yaml': 'source: { type: command, command: [sleep, "600"] }\n',
      'default/broken.yaml':
        'source: { type: command, command: ["false"] }\nretries: { max: 1, backoff: 10m }\n',
    },
  });
  receiver = await startReceiver();
  flowhook = new Flowhook({
    url: service.url,
    key: service.key,
    fetch: (input, init) => {
      called.add(patternOf(init?.method ?? 'GET', new URL(String(input)).pathname));
      return fetch(input, init);
    },
  });
});

after(async () => {
  await service.stop();
  await receiver.stop();
});

function patternOf(method: string, path: string): string {
  const found = routes.find((route) => {
    const form = route.path.replace(/\{\w+=wh_\*\}/g, 'wh_[^/]+').replace(/\{\w+\}/g, '[^/]+');
    return route.method === method && new RegExp(`^${form}$`).test(path);
  });
  return found === undefined ? `${method} ${path}` : `${found.method} ${found.path}`;
}

test('the five operations: read, queue, list, subscribe, unsubscribe', async () => {
  const { workflows, webhooks, jobs } = flowhook;
  assert.deepEqual(await workflows.readAll('people'), []);
  // Deliveries have a `v1a` signature once somebody has read the public keys.
  const publicKeys = (await flowhook.signingKeys()).map(({ key }) => key);
  const { webhookId } = await webhooks.subscribe({ workflowId: 'people', url: receiver.url, events: ['*'] });
  assert.deepEqual(
    (await webhooks.list({ workflowId: 'people' })).map(({ id, url, events }) => [id, url, events]),
    [[webhookId, receiver.url, ['*']]],
  );
  const { jobId, message } = await workflows.queue('people');
  assert.equal(message, 'Job queued');
  const job = await jobs.wait(jobId, { withinMs: 20_000 });
  assert.deepEqual([job.state, job.records?.added], ['finished', 2]);
  const records = await workflows.readAll('people');
  assert.deepEqual(records, [{ id: '1', name: 'Ada', email: 'ada@example.com' }, { id: '2' }]);

  await receiver.until((all) => all.some(({ event }) => event.type === 'workflow_finished'), 'the end');
  const [last] = receiver.received.filter(({ event }) => event.type === 'workflow_finished');
  const secrets = [await webhooks.secret(webhookId)];
  for (const trust of [{ secrets }, { publicKeys }]) {
    const event = await verifyWebhook(last?.text ?? '', last?.headers ?? {}, trust);
    assert.ok(event.type === 'workflow_finished');
    assert.equal(event.data.records.total, 2);
  }
  assert.match((await webhooks.unsubscribe(webhookId)).message, /unsubscribed/);
  assert.deepEqual(await webhooks.list(), []);
});

test('reads records conditionally, by version, in part, and in other formats', async () => {
  const { workflows } = flowhook;
  const data = await workflows.openData('people');
  assert.deepEqual([data?.version, data?.total], [1, 2]);
  assert.equal(await workflows.openData('people', { ifNoneMatch: data?.etag ?? '' }), null);
  assert.deepEqual(await workflows.readAll('people', { fields: ['name'], q: 'ada' }), [
    { id: '1', name: 'Ada' },
  ]);
  assert.deepEqual(await workflows.readAll('people', { version: 0 }), []);
  assert.equal(
    await (await workflows.dataAs('csv', 'people', { fields: ['name'] })).text(),
    'id,name\r\n1,Ada\r\n2,\r\n',
  );
});

test('reads records page by page, with a cursor that keeps its version', async () => {
  const { workflows } = flowhook;
  const { items, next, ...of } = await workflows.dataPage('people', { fields: ['name'], limit: 1 });
  assert.deepEqual(items, [{ id: '1', name: 'Ada' }]);
  assert.deepEqual(of, { version: 1, total: 2 });
  const last = await workflows.dataPage('people', { fields: ['name'], limit: 1, cursor: next ?? '' });
  assert.deepEqual([last.items, last.next], [[{ id: '2' }], null]);
});

test('pushes arrays and streams, and reads their versions and changes', async () => {
  const { workflows } = flowhook;
  assert.equal((await workflows.push('inbox', [{ id: 1 }, { id: 2 }])).version, 1);
  async function* later() {
    yield { id: 2, name: 'Grace' };
    yield { id: 3 };
  }
  const pushed = await workflows.push('inbox', later(), { mode: 'replace' });
  assert.deepEqual(pushed.records, { total: 2, added: 1, changed: 1, removed: 1 });
  await workflows.push('inbox', { contentType: 'text/csv', body: 'id\n9\n' });
  const changes = await Array.fromAsync(workflows.changes('inbox', { since: 1, until: 2 }));
  assert.deepEqual(
    changes.map(({ type, id }) => [type, id]),
    [
      ['changed', '2'],
      ['added', '3'],
      ['removed', '1'],
    ],
  );
  const names = workflows.changes('inbox', {
    since: 1,
    until: 2,
    type: ['changed', 'removed'],
    field: ['name', 'x'],
  });
  assert.deepEqual(
    (await Array.fromAsync(names)).map(({ id }) => id),
    ['2'],
  );
  const named = workflows.changes('inbox', { since: 1, until: 2, type: ['changed'], field: 'name' });
  assert.equal((await Array.fromAsync(named)).length, 1, 'one field needs no list');
  const table = await workflows.changesAs('csv', 'inbox', { since: new Date(0), until: 1 });
  assert.match(await table.text(), /^type,id,version,field,value,previousValue\r\nadded,1,1,,,\r\n/);
  const history = await workflows.recordHistory('inbox', '2', { limit: 1 }).take(9);
  assert.deepEqual(
    history.map(({ type, version }) => [type, version]),
    [
      ['removed', 3],
      ['changed', 2],
      ['added', 1],
    ],
  );
  await assert.rejects(workflows.recordHistory('inbox', 'none').take(1), { code: 'record_not_found' });
  const versions = await workflows.versions('inbox', { limit: 1 }).take(9);
  assert.deepEqual(
    versions.map(({ number }) => number),
    [3, 2, 1],
  );
  await assert.rejects(workflows.push('inbox', [{ name: 'nobody' }]), (error: FlowhookError) => {
    assert.deepEqual([error.status, error.code, error.jobId?.slice(0, 4)], [422, 'push_refused', 'job_']);
    return true;
  });
  const report = await workflows.erase('inbox', { id: '9', dryRun: true });
  assert.ok(report.found.some(({ place }) => place === 'record'));
  assert.equal(report.dryRun, true);
  const held = await Array.fromAsync(flowhook.exportPerson('ADA@example.com'));
  assert.ok(held.some((text) => text.startsWith('{"place":"record","workflowId":"people","id":"1"')));
  await assert.rejects(flowhook.exportPerson('ada').next(), { code: 'field_invalid' });
});

test('lists, pauses and resumes workflows', async () => {
  const { workflows } = flowhook;
  const ids = [];
  for await (const { id } of workflows.list({ limit: 3 })) ids.push(id);
  assert.deepEqual(ids.sort(), ['broken', 'checked', 'inbox', 'people', 'slow']);
  assert.equal((await workflows.pause('people')).paused, true);
  await assert.rejects(workflows.queue('people'), Conflict);
  assert.equal((await workflows.resume('people')).paused, false);
  assert.equal((await workflows.get('people')).lastJob?.state, 'finished');
});

test('follows, cancels, reruns and runs jobs now', async () => {
  const { jobs, workflows } = flowhook;
  const slow = await workflows.queue('slow');
  await assert.rejects(workflows.queue('slow'), (error: Conflict) => error.jobId === slow.jobId);
  await assert.rejects(jobs.wait(slow.jobId, { withinMs: 1 }), { code: 'timed_out' });
  const waiting = jobs.wait(slow.jobId);
  await jobs.cancel(slow.jobId);
  assert.equal((await waiting).state, 'canceled');
  await assert.rejects(jobs.cancel(slow.jobId), Conflict);

  const [first] = await jobs.list({ workflowId: 'people', state: ['finished'], origin: 'api' }).take(1);
  const { job } = await jobs.rerun(first?.id ?? '');
  const lines = await Array.fromAsync(jobs.followLogs(job.id));
  assert.ok(lines.some(({ text }) => text === 'one line of log'));
  assert.equal((await jobs.logs(job.id)).next, null);

  const broken = await workflows.queue('broken');
  for await (const event of flowhook.events.follow({ after: 0 })) {
    if (event.type === 'workflow_started' && event.jobId === broken.jobId) break;
  }
  while ((await jobs.get(broken.jobId)).state !== 'retrying');
  await jobs.runNow(broken.jobId);
  assert.equal((await jobs.wait(broken.jobId)).reason, 'error');
});

test('reads recent jobs of workflows, job counts, and usage', async () => {
  const { jobs, workflows } = flowhook;
  const [listed] = (await workflows.list({ recentJobs: 2 }).take(9)).filter(({ id }) => id === 'people');
  const newest = await jobs.list({ workflowId: 'people', limit: 2 }).take(2);
  assert.deepEqual(
    listed?.recentJobs?.map(({ id, state }) => [id, state]),
    newest.map(({ id, state }) => [id, state]),
  );
  const counts = await jobs.counts({ workflowId: 'broken' });
  assert.deepEqual([counts.failed, counts.queued, counts.complete], [1, 0, true]);
  await assert.rejects(jobs.counts({ workflowId: 'nobody' }), NotFound);

  await countUsage(service.store, { graceMs: 0, limit: 100 });
  const usage = await flowhook.usage({ workflowId: 'people', from: new Date(Date.now() - 1) });
  assert.deepEqual(usage.buckets.at(-1)?.jobs, {
    finished: counted(await jobs.list().take(99)),
    failed: 0,
    canceled: 0,
  });
  assert.equal((await flowhook.usage({ by: 'day' })).buckets.length, 30);
});

function counted(jobs: readonly Job[]): number {
  return jobs.filter(({ workflowId, state }) => workflowId === 'people' && state === 'finished').length;
}

test('creates, updates, tests and pauses webhooks, and replays deliveries', async () => {
  const { webhooks, deliveries, events } = flowhook;
  const made = await webhooks.create({ url: receiver.url, events: ['workflow_failed'] });
  assert.equal(made.workflowId, null);
  assert.equal((await webhooks.update(made.id, { timeoutMs: 5_000 })).settings.timeoutMs, 5_000);
  assert.equal((await webhooks.pause(made.id, { reason: 'lunch' })).pausedReason, 'lunch');
  assert.equal((await webhooks.resume(made.id)).state, 'active');
  const refused = webhooks.verify(made.id);
  await assert.rejects(refused, { code: 'field_invalid' }, 'only webhooks that send mail have an address');
  assert.match((await webhooks.rotate(made.id, { overlapHours: 1 })).secret, /^whsec_/);
  const { deliveryId, eventId } = await webhooks.test(made.id);
  await receiver.until((all) => all.some(({ event }) => event.id === eventId), 'the test');
  assert.equal((await events.get(eventId)).type, 'webhook_test');
  assert.equal((await deliveries.get(deliveryId)).event.id, eventId);
  assert.equal((await webhooks.deliveries(made.id).take(1))[0]?.id, deliveryId);
  const found = await deliveries.list({ webhookId: made.id, q: deliveryId, since: new Date(0) }).take(9);
  assert.deepEqual(
    found.map(({ id, webhookUrl }) => [id, webhookUrl]),
    [[deliveryId, receiver.url]],
  );
  assert.match((await deliveries.curl(deliveryId)).command, /^curl /);
  assert.match((await deliveries.replay(deliveryId)).message, /now|again/);
  assert.equal((await webhooks.replay(made.id, [deliveryId])).length, 1);
  const plan = await webhooks.planReplay(made.id, { since: new Date(0), states: ['dead'] });
  assert.deepEqual([plan.count, plan.isComplete], [0, true]);
  const replay = await webhooks.replaySince(made.id, { since: new Date(0), states: ['dead'] });
  assert.equal((await webhooks.readReplay(made.id, replay.id)).webhookId, made.id);
  assert.equal((await flowhook.search(made.id, { types: ['webhooks'] })).hits[0]?.id, made.id);
  const retried = { webhookId: made.id, states: ['delivered'] as const, events: ['webhook_test'] as const };
  const { count, until } = await deliveries.planRetry(retried);
  assert.ok(count > 0);
  const retry = await deliveries.retry({ ...retried, until });
  assert.equal((await deliveries.readRetry(retry?.id ?? '')).replays[0]?.webhookId, made.id);
  assert.equal(await deliveries.retry({ ...retried, until: new Date(0) }), null);
  assert.equal((await webhooks.get(made.id)).state, 'active');
  const filtered = await webhooks.create({
    url: receiver.url,
    events: ['workflow_failed'],
    workflowId: 'people',
    name: 'Late failures',
    labels: ['customer:acme'],
    filter: 'event.sequence > 1000000',
  });
  assert.deepEqual(
    [filtered.workflowId, filtered.name, filtered.labels],
    ['people', 'Late failures', ['customer:acme']],
  );
  const moved = await webhooks.update(filtered.id, { url: `${receiver.url}/moved`, events: ['job.failed'] });
  assert.deepEqual([moved.url, moved.events], [`${receiver.url}/moved`, ['job.failed']]);
  assert.match(moved.message, /^Webhook updated: it sends to the new URL\./);
  await webhooks.update(filtered.id, { url: receiver.url });
  assert.equal((await webhooks.update(filtered.id, { filter: null, name: null })).filter, null);
  assert.deepEqual(await webhooks.decisions(made.id, { state: ['sent'] }).take(1), []);
  assert.deepEqual(await events.decisions(eventId).take(1), []);
  const { tried, mistake } = await webhooks.try({ filter: 'event.type == "webhook_test"', last: 50 });
  assert.equal(mistake, null);
  assert.ok(tried.some((one) => one.eventId === eventId && one.sent));
  assert.deepEqual((await webhooks.try({ filter: 'evnt' })).tried, []);
  const { events: tests } = await events.page({ filter: `event.id == "${eventId}"` });
  assert.deepEqual(
    tests.map(({ id }) => id),
    [eventId],
  );
  assert.equal((await webhooks.listDetails().take(1))[0]?.state, 'active');
  assert.equal((await webhooks.listDetails({ state: ['active'] }).take(1)).length, 1);
  const named = { label: 'customer:acme', q: 'ACME', sort: '-name' } as const;
  assert.deepEqual(
    (await webhooks.listDetails(named).take(9)).map(({ id }) => id),
    [filtered.id],
  );
  await webhooks.listDetails({ workflowId: 'people' }).page();
  assert.deepEqual(await webhooks.listDetails({ state: ['failing', 'paused'] }).take(1), []);
  await assert.rejects(webhooks.listDetails({ workflowId: 'nobody' }).page(), NotFound);
  assert.match((await webhooks.unsubscribeUrl({ url: receiver.url })).message, /^2 webhooks /);
  const teamId = (await events.page({ limit: 1 })).events[0]?.teamId;
  assert.equal((await flowhook.signingKeys(teamId)).length, 1);
});

test('creates, updates and deletes inspectors, and reads their requests', async () => {
  const { inspectors } = flowhook;
  const made = await inspectors.create({ status: 200 });
  assert.equal((await inspectors.update(made.id, { status: 503 })).status, 503);
  for (const method of ['GET', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS']) {
    assert.equal((await fetch(made.url, { method })).status, 503);
  }
  assert.deepEqual(await inspectors.get(made.id), { ...made, status: 503, received: 6 });
  assert.deepEqual(
    (await inspectors.requests(made.id, { after: 5 }).take(9)).map((one) => one.method),
    ['OPTIONS'],
  );
  assert.deepEqual(
    (await inspectors.list()).map(({ id }) => id),
    [made.id],
  );
  await inspectors.delete(made.id);
  await assert.rejects(inspectors.get(made.id), NotFound);
});

test('creates, updates, rotates and revokes feeds, whose addresses need no key', async () => {
  const { feeds } = flowhook;
  const made = await feeds.create('people', { title: 'All people', entries: 'version' });
  const { html = '', atom = '', json = '' } = made.urls ?? {};
  for (const url of [html, atom, json]) assert.equal((await fetch(url)).status, 200);
  assert.equal((await feeds.update('people', made.id, { limit: 9 })).limit, 9);
  const rotated = await feeds.rotate('people', made.id);
  assert.equal((await fetch(atom)).status, 410);
  assert.deepEqual(await feeds.get('people', made.id), rotated);
  assert.deepEqual(await feeds.list('people'), [rotated]);
  assert.match((await feeds.revoke('people', made.id)).message, /revoked/);
  assert.equal((await fetch(rotated.urls?.atom ?? '')).status, 410);
  await assert.rejects(feeds.get('people', made.id), NotFound);
});

test('creates, rotates and revokes keys', async () => {
  const { keys } = flowhook;
  const made = await keys.create({
    name: 'reader',
    scopes: ['read'],
    expiresAt: new Date(Date.now() + 3_600_000),
  });
  const reader = new Flowhook({ url: service.url, key: made.apiKey });
  assert.deepEqual((await reader.me()).key.scopes, ['read']);
  const rotated = await keys.rotate(made.key.id);
  await assert.rejects(reader.me(), Unauthorized);
  assert.notEqual((await keys.revoke(rotated.key.id)).revokedAt, null);
  const { key: own } = await flowhook.me();
  await assert.rejects(keys.revoke(own.id), { code: 'key_of_operator' });
  assert.ok((await keys.list().take(9)).some(({ id }) => id === made.key.id));
  const [line] = await flowhook.audit({ action: 'keys.create', target: made.key.id }).take(1);
  assert.deepEqual(line?.target, { kind: 'key', id: made.key.id });
  assert.equal(line?.actor.kind, 'key');
});

test('creates and archives workflows, and the stream reports it', async () => {
  const { workflows } = flowhook;
  const abort = new AbortController();
  const news = flowhook.stream({ after: 0, signal: abort.signal });
  const first = news.next();
  const made = await workflows.put('made', { source: { type: 'push' }, name: 'Made here' });
  assert.equal(made.name, 'Made here');
  assert.match(await workflows.check('made', { source: { type: 'push' }, key: ['id'] }), /valid/);
  const { origin, text, etag } = await workflows.definition('made');
  assert.deepEqual([origin, JSON.parse(text ?? '').name], ['api', 'Made here']);
  await workflows.put('made', { source: { type: 'push' } }, { ifMatch: etag ?? '' });
  await assert.rejects(
    workflows.put('made', { source: { type: 'push' } }, { ifMatch: etag ?? '' }),
    Conflict,
  );
  assert.match((await first).value?.kind ?? '', /^[a-z]+$/);
  await news.return(undefined);
  await workflows.delete('made');
  await assert.rejects(workflows.get('made'), NotFound);
  await assert.rejects(workflows.put('people', { source: { type: 'push' } }), Conflict);
});

test('a deletion succeeds if the first response is lost', async () => {
  const made = await flowhook.inspectors.create({});
  const { id } = await flowhook.webhooks.create({ url: receiver.url, events: ['*'] });
  await flowhook.workflows.put('passing', { source: { type: 'push' } });
  const statuses: number[] = [];
  const forgetful = new Flowhook({
    url: service.url,
    key: service.key,
    fetch: async (input, init) => {
      const response = await fetch(input, init);
      statuses.push(response.status);
      if (response.ok) throw new TypeError('the connection broke');
      return response;
    },
  });
  await forgetful.inspectors.delete(made.id);
  await forgetful.webhooks.unsubscribe(id);
  await forgetful.workflows.delete('passing');
  assert.deepEqual(statuses, [200, 404, 200, 404, 200, 404]);
});

test('the stream reports the position after which nothing is missed', async () => {
  const abort = new AbortController();
  const sequence = await new Promise<number>((onOpen, fail) => {
    flowhook.stream({ onOpen, signal: abort.signal }).next().catch(fail);
  });
  abort.abort();
  assert.ok(sequence > 0);
});

test('an operator reads the state of the instance', async () => {
  const { jobs, settings } = await flowhook.system();
  assert.equal(jobs.complete, true);
  assert.ok(settings.some(({ name }) => name === 'port'));
});

test('an operator runs the health checks', async () => {
  const { findings } = await flowhook.systemChecks({ timeoutMs: 0 });
  assert.equal(findings.find(({ check }) => check === 'port')?.status, 'ok');
});

test('reads event types, schemas and samples', async () => {
  const { events } = flowhook;
  const types = await events.types();
  assert.ok(
    types.some(({ type, aliases }) => type === 'workflow_finished' && aliases.includes('job.completed')),
  );
  assert.equal((await events.sample('job.completed'))?.type, 'workflow_finished');
  await assert.rejects(events.sample('nothing'), NotFound);
});

test('reads past events by workflow, job, type and time, and their deliveries', async () => {
  const { jobId } = await flowhook.workflows.queue('people');
  const job = await flowhook.jobs.wait(jobId);
  const { events } = flowhook;
  const ofJob = await events.history({ jobId }).take(10);
  assert.deepEqual(
    ofJob.map(({ type }) => type),
    ['workflow_finished', 'workflow_started', 'workflow_queued'],
  );
  const { queuedAt: since, finishedAt } = job;
  const type = ['workflow_finished'] as const;
  const until = finishedAt ?? undefined;
  const found = await events.history({ workflowId: 'people', type, since, until, limit: 1 }).take(10);
  assert.deepEqual(found, ofJob.slice(0, 1));
  assert.deepEqual(
    (await flowhook.jobs.list({ since, until }).take(10)).map(({ id }) => id),
    [jobId],
  );
  await assert.rejects(events.history({ jobId: 'job_x' }).page(), NotFound);
  await assert.rejects(events.history({ since: finishedAt ?? '', until: '2020-01-01T00:00:00Z' }).page(), {
    code: 'field_invalid',
  });
  const { items } = await events.deliveries(ofJob[0]?.id ?? '').page();
  assert.ok(items.every(({ eventId }) => eventId === ofJob[0]?.id));
});

test('reads what the records of versions look like', async () => {
  const { profiles, expect } = await flowhook.workflows.profile('people', { versions: 1 });
  assert.equal(profiles.length, 1);
  assert.ok(profiles[0]?.fields.some(({ name }) => name === 'id'));
  assert.ok('fields' in expect);
});

test('shows, sets and resets the state of a source', async () => {
  const { workflows } = flowhook;
  await workflows.resetState('broken');
  const { state, etag } = await workflows.state('broken');
  assert.equal(state, null);
  await workflows.setState('broken', { since: 3 }, { ifMatch: etag ?? '' });
  await assert.rejects(workflows.setState('broken', 1, { ifMatch: etag ?? '' }), Conflict);
  assert.deepEqual((await workflows.state('broken')).state, { since: 3 });
  const parse = (text: string) => ({ state: text.length });
  assert.equal((await workflows.state('broken', { parse })).state, '{"state":{"since":3}}'.length);
  await workflows.resetState('broken');
});

test('lists, accepts and drops records of the quarantine', async () => {
  const { quarantine, workflows } = flowhook;
  const bad = ['a', 'b', 'c'].map((id) => ({ id, price: -1 }));
  const { jobId } = await workflows.push('checked', [
    ...bad,
    { id: 'd' },
    { id: 'e' },
    { id: 'f', price: 1 },
  ]);
  const ids = async (filter = {}) =>
    (await quarantine.list('checked', { limit: 2, ...filter }).take(10)).map(({ id }) => id);
  assert.deepEqual(await ids({ jobId, field: 'price' }), ['c', 'b', 'a']);
  assert.deepEqual(await ids({ field: 'name' }), []);
  const { reasons, published } = await quarantine.get('checked', 'a');
  assert.deepEqual([reasons[0]?.message, published], ['`price` is less than 0: -1', null]);
  const csv = await (await quarantine.as('csv', 'checked')).text();
  assert.equal(csv.trimEnd().split('\r\n').length, 4);
  const accepted = await quarantine.accept('checked', { ids: ['a', 'x'] });
  assert.deepEqual([accepted.accepted, accepted.conflicts], [1, [{ id: 'x', reason: 'not_found' }]]);
  await assert.rejects(quarantine.accept('checked', { ids: ['a'] }), Conflict);
  assert.equal((await quarantine.drop('checked', { all: true, untilJobId: jobId })).dropped, 2);
  await assert.rejects(quarantine.get('checked', 'b'), NotFound);
});

test('throws errors of different classes', async () => {
  await assert.rejects(flowhook.workflows.get('nobody'), NotFound);
  await assert.rejects(flowhook.workflows.readAll('nobody'), {
    name: 'NotFound',
    code: 'workflow_not_found',
  });
  await assert.rejects(new Flowhook({ url: service.url, key: 'wrong' }).jobs.list().page(), Unauthorized);
  await assert.rejects(flowhook.jobs.list({ limit: 0 }).page(), (error: FlowhookError) => {
    assert.equal(error.code, 'field_invalid');
    assert.match(error.requestId ?? '', /./);
    return true;
  });
});

test('the signal ends following events', async () => {
  const abort = new AbortController();
  const heard = Array.fromAsync(flowhook.events.follow({ signal: abort.signal }));
  abort.abort(new Error('enough'));
  await assert.rejects(heard, /enough/);
});

/** Routes for monitoring, and public addresses, which the client does not call. */
const NOT_OF_THE_CLIENT = [
  '/openapi.json',
  '/openapi.yaml',
  '/docs',
  '/livez',
  '/readyz',
  '/metrics',
  '/inspect/{address}',
  '/feeds/{feedAddress}',
  '/mail/verify/{mailToken}',
  '/mail/unsubscribe/{mailToken}',
];

test('every route was called', () => {
  const all = routes.filter(({ path }) => !NOT_OF_THE_CLIENT.includes(path));
  const left = all.map(({ method, path }) => `${method} ${path}`).filter((route) => !called.has(route));
  assert.deepEqual(left, []);
});
