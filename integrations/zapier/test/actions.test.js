/** The actions and searches, against a real service. */
import assert from 'node:assert/strict';
import { createServer, request as forward } from 'node:http';
import { after, afterEach, before, test } from 'node:test';
import { countAsked, undocumented } from './support/documented.js';
import { App, appTester, runStep } from './support/run.js';
import { startService, until } from './support/service.js';
import { startZapierSide } from './support/zapier-side.js';

const waitsForGate = `source:
  type: command
  command: ["sh", "-c", "until [ -e $GATE ]; do sleep 0.02; done; echo '{\\"id\\": 1, \\"name\\": \\"Ada\\"}'"]
`;

/** @type {Awaited<ReturnType<typeof startService>>} */
let service;
/** @type {Awaited<ReturnType<typeof startZapierSide>>} */
let zapierSide;

before(async () => {
  zapierSide = await startZapierSide();
  service = await startService({
    'default/people.yaml': `name: People
source:
  type: command
  command: ["sh", "-c", "for i in 1 2 3 4 5; do echo \\"{\\\\\\"id\\\\\\": $i, \\\\\\"name\\\\\\": \\\\\\"Person $i\\\\\\"}\\"; done"]
`,
    'default/held.yaml': `name: Held\n${waitsForGate}`,
    'default/buffered.yaml': `name: Buffered\noverlap: buffer\n${waitsForGate}`,
    'default/broken.yaml':
      'name: Broken\nretries: { max: 0 }\nsource: { type: command, command: ["sh", "-c", "echo no such host >&2; exit 7"] }\n',
    'default/inbox.yaml': 'name: Inbox\nmode: upsert\nsource: { type: push }\n',
  });
});
after(async () => {
  await service?.stop();
  await zapierSide?.stop();
});
afterEach(async () => {
  delete process.env.FLOWHOOK_WAIT_SECONDS;
  await service.openGate();
  await until(
    'the jobs to end',
    () => service.call('GET', '/v1/jobs?state=queued,running,retrying'),
    (answer) => answer.body.jobs.length === 0,
  );
  await service.closeGate();
});

const bundle = (inputData = {}, more = {}) => ({
  authData: service.authData(),
  inputData,
  meta: {},
  ...more,
});
/** @returns {Promise<any>} */
const act = (key, inputData, more) => appTester(App.creates[key].operation.perform, bundle(inputData, more));
/**
 * Runs "Run Workflow" like Zapier, from queueing to the records, on machines of any speed: the step may sleep, be woken at
 * its callback URL, and check again.
 *
 * @param {object} inputData
 * @param {() => Promise<unknown>} [onSleep] called when the step sleeps
 */
async function run(inputData, onSleep = async () => {}) {
  const step = bundle(inputData);
  const name = `run-${runs++}`;
  const first = await runStep('creates.run_workflow.operation.perform', step, {
    callbackUrl: zapierSide.url(name),
  });
  if (first.status === 'SUCCESS') return first.results;
  await onSleep();
  await zapierSide.until(name, (calls) => calls.length > 0);
  return resumed({ ...step, outputData: first.results });
}
let runs = 0;

/** Repeats a step as long as it asks for that. */
async function resumed(step) {
  for (const deadline = Date.now() + 60_000; ; ) {
    try {
      return (await runStep('creates.run_workflow.operation.performResume', step)).results;
    } catch (error) {
      if (!(error instanceof Error) || error.name !== 'ThrottledError' || Date.now() > deadline) throw error;
    }
  }
}
/** The message of an error of the platform, which may add a code as JSON or details in more lines. */
const sentenceOf = (error) => {
  try {
    return JSON.parse(error.message).message;
  } catch {
    return error.message.split('\n')[0];
  }
};
/**
 * @param {Promise<unknown>} step
 * @param {{ name: string, sentence: RegExp }} expected
 */
const refused = async (step, { name, sentence }) => {
  await assert.rejects(step, (error) => {
    assert.ok(error instanceof Error);
    assert.equal(error.name, name, error.message);
    assert.match(sentenceOf(error), sentence);
    return true;
  });
};

test('"Queue Job" queues a job, and says why it does not queue a second one', async () => {
  const first = await act('queue_job', { workflowId: 'held' });
  assert.equal(first.queued, true);
  assert.match(first.id, /^job_/);
  await refused(act('queue_job', { workflowId: 'held' }), {
    name: 'HaltedError',
    sentence: new RegExp(
      `^A job is already queued for this workflow \\(held\\)\\. The unfinished job is ${first.id}$`,
    ),
  });
  const second = await act('queue_job', { workflowId: 'held', whenBusy: 'skip' });
  assert.deepEqual([second.id, second.queued], [first.id, false]);
});

test('"Queue Job" waits for the unfinished job, and then lets Zapier retry later', async () => {
  await act('queue_job', { workflowId: 'held' });
  process.env.FLOWHOOK_WAIT_SECONDS = '0';
  await refused(act('queue_job', { workflowId: 'held', whenBusy: 'wait' }), {
    name: 'ThrottledError',
    sentence: /already queued.*retries later/,
  });
  delete process.env.FLOWHOOK_WAIT_SECONDS;
  const queued = until(
    'room',
    // Like Zapier when a step is throttled.
    () => act('queue_job', { workflowId: 'held', whenBusy: 'wait' }).catch((error) => error),
    (answer) => answer.name !== 'ThrottledError',
  );
  await service.openGate();
  assert.equal((await queued).queued, true);
});

test('"Queue Job" queues nothing when it is repeated for the same event', async () => {
  const once = { workflowId: 'held', onceFor: 'evt_é 1' };
  const first = await act('queue_job', once);
  assert.deepEqual(await act('queue_job', once), first);
});

test('an unknown workflow or a push workflow causes an error with the message of the service', async () => {
  await refused(act('queue_job', { workflowId: 'nobody' }), {
    name: 'AppError',
    sentence: /^No workflow found$/,
  });
  await refused(act('queue_job', { workflowId: 'inbox' }), {
    name: 'AppError',
    sentence: /receives its records by push/,
  });
});

test('"Run Workflow" returns the records of the run, up to the limit', async () => {
  const all = await run({ workflowId: 'people' });
  assert.equal(all.state, 'finished');
  assert.deepEqual([all.total, all.complete], [5, true]);
  assert.deepEqual(all.records[4], { id: '5', name: 'Person 5' });
  const two = await run({ workflowId: 'people', limit: '2' });
  assert.deepEqual(
    two.records.map((record) => record.id),
    ['1', '2'],
  );
  assert.equal(two.complete, false);
  const changed = await run({ workflowId: 'people', which: 'changed' });
  assert.deepEqual([changed.records, changed.complete, changed.total], [[], true, 5]);
});

test('"Run Workflow" returns only added and changed records if requested', async () => {
  await act('push_records', {
    workflowId: 'inbox',
    records: [{ id: 'old' }, { id: 'both', name: 'Before' }],
  });
  const { id: jobId } = await act('push_records', {
    workflowId: 'inbox',
    records: [{ id: 'both', name: 'After' }, { id: 'new' }],
  });
  const { records } = await resumed({
    ...bundle({ workflowId: 'inbox', which: 'changed' }),
    outputData: { jobId, webhookId: 'wh_gone' },
  });
  assert.deepEqual(records, [{ id: 'both', name: 'After' }, { id: 'new' }]);
});

test('"Run Workflow" reads in pages', async () => {
  const many = Array.from({ length: 2_345 }, (_, i) => ({ id: `page-${i}` }));
  const { id: jobId } = await act('push_records', { workflowId: 'inbox', json: JSON.stringify(many) });
  const results = await resumed({
    ...bundle({ workflowId: 'inbox', limit: 2_000 }),
    outputData: { jobId, webhookId: 'wh_gone' },
  });
  assert.equal(results.records.length, 2_000);
  assert.equal(new Set(results.records.map((record) => record.id)).size, 2_000);
  assert.equal(results.complete, false);
});

test('"Run Workflow" says why a job has failed, or that it was canceled', async () => {
  await refused(run({ workflowId: 'broken' }), {
    name: 'AppError',
    sentence: /^The job job_\w+ has failed \(error\): .*no such host/s,
  });
  const rejected = refused(run({ workflowId: 'held' }), {
    name: 'HaltedError',
    sentence: /^The job job_\w+ was canceled: /,
  });
  const job = await until(
    'the job',
    () => service.call('GET', '/v1/jobs?workflowId=held&state=queued,running&limit=1'),
    (answer) => answer.body.jobs.length === 1,
  );
  await service.call('POST', `/v1/jobs/${job.body.jobs[0].id}/cancel`);
  await rejected;
});

test('"Run Workflow" joins the unfinished job, or stops, depending on its setting', async () => {
  const { id } = await act('queue_job', { workflowId: 'held' });
  await refused(run({ workflowId: 'held', whenBusy: 'stop' }), {
    name: 'HaltedError',
    sentence: /already queued/,
  });
  // The job ends only when the step has joined it.
  process.env.FLOWHOOK_WAIT_SECONDS = '0';
  const joined = await run({ workflowId: 'held' }, () => service.openGate());
  assert.equal(joined.id, id);
});

test('"Run Workflow" sleeps during a long job, wakes with its records, and removes its webhook', async () => {
  process.env.FLOWHOOK_WAIT_SECONDS = '0';
  const step = bundle({ workflowId: 'held' });
  const asleep = await runStep('creates.run_workflow.operation.perform', step, {
    callbackUrl: zapierSide.url('callback'),
  });
  assert.equal(asleep.status, 'CALLBACK');
  assert.deepEqual(
    (await service.webhooks()).map(({ id, url }) => ({ id, url })),
    [{ id: asleep.results.webhookId, url: zapierSide.url('callback') }],
  );
  await service.openGate();
  const [call] = await zapierSide.until('callback', (all) => all.length > 0);
  assert.equal(call?.cleanedRequest.jobId, asleep.results.jobId);
  const resume = { ...step, ...call, outputData: asleep.results };
  const awake = await runStep('creates.run_workflow.operation.performResume', resume);
  assert.equal(awake.status, 'SUCCESS');
  assert.deepEqual(
    [awake.results.id, awake.results.records],
    [asleep.results.jobId, [{ id: '1', name: 'Ada' }]],
  );
  assert.deepEqual(await service.webhooks(), []);
});

test('"Run Workflow" is woken even if the job ends just before its webhook exists', async () => {
  // One job runs and the other waits, so that the other can be canceled immediately.
  await act('queue_job', { workflowId: 'buffered' });
  process.env.FLOWHOOK_WAIT_SECONDS = '0';
  // A proxy that ends the job before it forwards a subscription.
  const between = createServer((incoming, outgoing) => {
    const pass = () =>
      incoming.pipe(
        forward(
          service.url + incoming.url,
          { method: incoming.method, headers: incoming.headers },
          (answer) => {
            outgoing.writeHead(answer.statusCode ?? 502, answer.headers);
            answer.pipe(outgoing);
          },
        ),
      );
    if (incoming.url !== '/v1/integrations/webhooks/subscribe') return pass();
    service
      .call('GET', '/v1/jobs?workflowId=buffered&state=queued,running&limit=1')
      .then(({ body }) => service.call('POST', `/v1/jobs/${body.jobs[0].id}/cancel`))
      .then(pass, () => outgoing.destroy());
  });
  await new Promise((resolve) => between.listen(0, '127.0.0.1', () => resolve(undefined)));
  try {
    const { port } = /** @type {import('node:net').AddressInfo} */ (between.address());
    const authData = { ...service.authData(), baseUrl: `http://127.0.0.1:${port}` };
    const step = bundle({ workflowId: 'buffered' }, { authData });
    const asleep = await runStep('creates.run_workflow.operation.perform', step, {
      callbackUrl: zapierSide.url('late'),
    });
    assert.equal(asleep.status, 'CALLBACK');
    const [call] = await zapierSide.until('late', (calls) => calls.length > 0);
    assert.equal(call?.cleanedRequest.type, 'webhook_test');
    await refused(resumed({ ...step, ...call, outputData: asleep.results }), {
      name: 'HaltedError',
      sentence: new RegExp(`^The job ${asleep.results.jobId} was canceled: `),
    });
    assert.deepEqual(await service.webhooks(), []);
  } finally {
    between.close();
    between.closeAllConnections();
  }
});

test('"Run Workflow" that is woken by the previous job checks again later', async () => {
  await act('queue_job', { workflowId: 'buffered' });
  process.env.FLOWHOOK_WAIT_SECONDS = '0';
  const step = bundle({ workflowId: 'buffered' });
  const asleep = await runStep('creates.run_workflow.operation.perform', step, {
    callbackUrl: zapierSide.url('buffered'),
  });
  assert.equal(asleep.status, 'CALLBACK');
  const woken = { ...step, outputData: asleep.results };
  await refused(runStep('creates.run_workflow.operation.performResume', woken), {
    name: 'ThrottledError',
    sentence: /has not ended yet/,
  });
  assert.deepEqual(await service.webhooks(), []);
  await service.openGate();
  assert.equal((await resumed(woken)).id, asleep.results.jobId);
});

test('the editor does not sleep, and shows the published records', async () => {
  process.env.FLOWHOOK_WAIT_SECONDS = '0';
  const { status, results } = await runStep(
    'creates.run_workflow.operation.perform',
    bundle({ workflowId: 'held' }, { meta: { isLoadingSample: true } }),
    { callbackUrl: zapierSide.url('never') },
  );
  assert.equal(status, 'SUCCESS');
  assert.ok(['queued', 'running'].includes(results.state), results.state);
  assert.deepEqual(await service.webhooks(), []);
  assert.deepEqual(zapierSide.at('never'), []);
});

test('"Push Records" publishes line items and JSON, once for each event', async () => {
  const records = [
    { id: 'p1', name: 'Ada', email: '' },
    { id: 'p2', name: 'Grace {{bundle.authData.apiKey}}' },
  ];
  const once = { workflowId: 'inbox', records, onceFor: 'evt_1' };
  const pushed = await act('push_records', once);
  assert.equal(pushed.added, 2);
  assert.deepEqual(await act('push_records', once), pushed);
  await refused(act('push_records', { ...once, records: [{ id: 'p9' }] }), {
    name: 'AppError',
    sentence: /already used for a different request/,
  });
  const { added, changed } = await act('push_records', {
    workflowId: 'inbox',
    json: '[{"id": "p1", "name": "Ada", "age": 36}, {"id": "p3"}]',
  });
  assert.deepEqual([added, changed], [1, 1]);
  const { body } = await service.call('GET', '/v1/workflows/inbox/data');
  const byId = new Map(body.map((record) => [record.id, record]));
  assert.deepEqual(byId.get('p1'), { id: 'p1', name: 'Ada', age: 36 });
  assert.equal(byId.get('p2').name, 'Grace {{bundle.authData.apiKey}}');
  assert.equal(byId.has('p9'), false);
});

test('"Push Records" says why it refuses an invalid record, and never pushes an empty list', async () => {
  await refused(act('push_records', { workflowId: 'inbox', json: '[{"name": "nobody"}]' }), {
    name: 'AppError',
    sentence: /id/,
  });
  await refused(act('push_records', { workflowId: 'inbox', json: '{"id": ' }), {
    name: 'AppError',
    sentence: /^"Records as JSON" is not JSON: /,
  });
  await refused(
    act('push_records', { workflowId: 'inbox', records: [{ id: '', name: '' }], mode: 'replace' }),
    {
      name: 'HaltedError',
      sentence: /^There are no records to push$/,
    },
  );
  await refused(act('push_records', { workflowId: 'people', records: [{ id: '1' }] }), {
    name: 'AppError',
    sentence: /fetches its records itself/,
  });
});

test('the fields of a record are the named ones', async () => {
  const fields = await appTester(
    (z, own) =>
      App.creates.push_records.operation.inputFields.find((field) => typeof field === 'function')(z, own),
    bundle({ fieldNames: ['id', 'Full Name', ''] }),
  );
  assert.deepEqual(
    fields[0].children.map((child) => child.key),
    ['id', 'Full Name'],
  );
});

test('"Find Workflow" finds by id and by part of the name, with the exact id first', async () => {
  const find = (text) => appTester(App.searches.find_workflow.operation.perform, bundle({ text }));
  assert.equal((await find('inbox'))[0].name, 'Inbox');
  assert.deepEqual(
    (await find('EOPL')).map((workflow) => workflow.id),
    ['people'],
  );
  assert.deepEqual(await find('nobody'), []);
});

test('the drop-downs list workflows in pages, and push workflows', async () => {
  const cursors = {};
  const page = async (key, number) =>
    (
      await runStep(
        `triggers.${key}.operation.perform`,
        bundle({}, { meta: { page: number, isFillingDynamicDropdown: true } }),
        { cursors },
      )
    ).results.map((workflow) => workflow.id);
  assert.deepEqual(await page('workflows', 0), ['broken', 'buffered', 'held', 'inbox', 'people']);
  assert.deepEqual(await page('workflows', 1), [], 'there is no second page');
  assert.deepEqual(await page('push_workflows', 0), ['inbox']);
});

test('openapi.json documents all requests of the app', () => {
  assert.ok(countAsked() > 5);
  assert.deepEqual(undocumented(), []);
});
