/** The action node against a real service: queue, run, wait, read, push, and webhooks. */
import assert from 'node:assert/strict';
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, afterEach, before, test } from 'node:test';
import type { IDataObject } from 'n8n-workflow';
import { startN8n } from './support/n8n.mts';
import { KEY, type Service, startService } from './support/service.mts';

const held =
  'source: { type: command, command: ["sh", "-c", "until [ -e $GATE ]; do sleep 0.02; done; echo \'{\\"id\\": 1}\'"] }\n';

let service: Service;
let n8n: Awaited<ReturnType<typeof startN8n>>;
const access = { key: KEY, end: '' };

before(async () => {
  service = await startService({
    'default/many.yaml':
      'name: Many\nsource: { type: command, command: ["sh", "-c", "seq 2500 | sed \'s/.*/{\\"id\\": &, \\"name\\": \\"Person &\\", \\"age\\": 7}/\'"] }\n',
    'default/held.yaml': `name: Held\n${held}`,
    'default/broken.yaml':
      'name: Broken\nretries: { max: 0 }\nsource: { type: command, command: ["sh", "-c", "echo no such host >&2; exit 7"] }\n',
    'default/inbox.yaml': 'name: Inbox\nmode: upsert\nsource: { type: push }\n',
  });
  n8n = await startN8n(() => ({ baseUrl: service.url + access.end, apiKey: access.key }));
});
afterEach(async () => {
  await service.openGate();
  await service.idle();
  await service.closeGate();
});
after(async () => {
  await n8n?.stop();
  await service?.stop();
});

const act = (resource: string, operation: string, more: IDataObject = {}, items?: IDataObject[]) =>
  n8n.execute({ resource, operation, ...more }, items);
const queue = (more: IDataObject = {}) =>
  act('workflow', 'queue', { workflowId: 'held', whenBusy: 'fail', roomSeconds: 60, ...more });
const run = (workflowId: string, more: IDataObject = {}) =>
  act('workflow', 'run', { workflowId, whenBusy: 'wait', waitSeconds: 60, failWithJob: true, ...more });

test('"Queue" queues a job; a second one fails, uses the first job, or waits for it', async () => {
  const [first] = await queue();
  assert.equal(first?.json.queued, true);
  assert.match(first?.json.id, /^job_/);
  await assert.rejects(queue(), /already queued/);
  const [second] = await queue({ whenBusy: 'skip' });
  assert.deepEqual([second?.json.id, second?.json.queued], [first?.json.id, false]);
  await assert.rejects(queue({ whenBusy: 'wait', roomSeconds: 0 }), /has not ended in time/);
  const third = queue({ whenBusy: 'wait' });
  await service.openGate();
  const [queued] = await third;
  assert.equal(queued?.json.queued, true);
  assert.notEqual(queued?.json.id, first?.json.id);
});

test('"Queue" with the same idempotency key queues once', async () => {
  const [first] = await queue({ options: { idempotencyKey: 'evt_1' } });
  const [again] = await queue({ options: { idempotencyKey: 'evt_1' } });
  assert.equal(again?.json.id, first?.json.id);
});

test('an unknown workflow or a push workflow causes an error with the message of the service', async () => {
  for (const whenBusy of ['fail', 'skip', 'wait']) {
    await assert.rejects(queue({ workflowId: 'nobody', whenBusy }), /No workflow found/);
    await assert.rejects(queue({ workflowId: 'inbox', whenBusy }), /receives its records by push/);
  }
});

test('"Run" waits until the job ends, and says why it failed', async () => {
  const [done] = await run('many');
  assert.deepEqual([done?.json.state, done?.json.records.total], ['finished', 2500]);
  await assert.rejects(run('broken'), /failed: [\s\S]*no such host/);
  const [failed] = await run('broken', { failWithJob: false });
  assert.equal(failed?.json.state, 'failed');
});

test('"Wait" ends with the job or after its time limit, and "Cancel" ends the job', async () => {
  const [{ json } = { json: {} }] = await queue();
  const jobId = json.id;
  const wait = (more: IDataObject) =>
    act('job', 'wait', { jobId, waitSeconds: 60, failWithJob: true, ...more });
  await assert.rejects(wait({ waitSeconds: 0 }), /has not ended in time/);
  const [shown] = await act('job', 'get', { jobId });
  assert.equal(shown?.json.workflowId, 'held');
  await act('job', 'cancel', { jobId });
  await assert.rejects(wait({}), /was canceled/);
});

test('records are read in pages: all of them, or up to the limit', async () => {
  await run('many');
  const read = (more: IDataObject) => act('data', 'getAll', { workflowId: 'many', ...more });
  const all = await read({ returnAll: true });
  assert.equal(new Set(all.map(({ json }) => json.id)).size, 2500);
  assert.deepEqual(all[0]?.pairedItem, { item: 0 });
  assert.equal((await read({ returnAll: false, limit: 1001 })).length, 1001);
  const [one] = await read({ returnAll: false, limit: 1, options: { fields: 'name', q: 'Person 77' } });
  assert.deepEqual(Object.keys(one?.json), ['id', 'name']);
  assert.deepEqual(await read({ returnAll: true, options: { since: 1 } }), []);
});

test('"Push" publishes all items in one push, or a list written in the node', async () => {
  const push = (more: IDataObject, items?: IDataObject[]) =>
    act('data', 'push', { workflowId: 'inbox', ...more }, items);
  const out = await push({ recordsFrom: 'items' }, [{ id: 'a' }, { id: 'b', name: 'Ada' }]);
  assert.equal(out.length, 1);
  assert.equal(out[0]?.json.records.added, 2);
  assert.deepEqual(out[0]?.pairedItem, [{ item: 0 }, { item: 1 }]);
  const [written] = await push({
    recordsFrom: 'json',
    records: '[{"id": "c"}]',
    options: { mode: 'append' },
  });
  assert.equal(written?.json.records.total, 3);
  await assert.rejects(push({ recordsFrom: 'json', records: '{"id": ' }), /"Records" is not JSON/);
  await assert.rejects(push({ recordsFrom: 'json', records: '{}' }), /must be a list/);
  await assert.rejects(push({ recordsFrom: 'items' }, [{ name: 'nobody' }]), /id/);
});

test('webhooks are listed, subscribed and unsubscribed', async () => {
  const list = () => act('webhook', 'getAll', { webhookWorkflowId: '', returnAll: true });
  const webhookUrl = 'http://127.0.0.1:9/hook';
  for (const webhookWorkflowId of ['', 'many']) {
    const events = ['workflow_failed'];
    const [made] = await act('webhook', 'subscribe', { webhookWorkflowId, webhookUrl, events });
    const [listed] = await list();
    assert.deepEqual([listed?.json.id, listed?.json.url], [made?.json.id, webhookUrl]);
    await act('webhook', 'unsubscribe', { webhookId: made?.json.id });
    assert.deepEqual(await list(), []);
  }
  await assert.rejects(act('webhook', 'unsubscribe', { webhookId: 'wh_gone' }), /No webhook found/);
});

test('an item that fails stops the node, or becomes an error item', async () => {
  const parameters = { resource: 'job', operation: 'get', jobId: 'job_gone' };
  await assert.rejects(n8n.execute(parameters), /No job found/);
  const [out] = await n8n.execute(parameters, [{}], true);
  assert.match(out?.json.error, /No job found/);
});

test('workflows are listed, also in the drop-downs', async () => {
  const workflows = await act('workflow', 'getAll', { returnAll: false, limit: 2 });
  assert.deepEqual(
    workflows.map(({ json }) => json.id),
    ['broken', 'held'],
  );
  assert.equal((await n8n.options('action', 'getWorkflows')).length, 4);
  assert.equal((await n8n.options('action', 'getAllOrOneWorkflow')).length, 5);
});

test('a credential is tested, and the error about a wrong one says what to do', async () => {
  assert.equal(await n8n.tryCredential(), 200);
  access.end = '/v1/ ';
  assert.equal(await n8n.tryCredential(), 200);
  access.key = 'not-a-key-of-anybody';
  assert.equal(await n8n.tryCredential(), 401);
  await assert.rejects(act('workflow', 'getAll', { returnAll: true }), (error: { description?: string }) => {
    assert.match(String(error.description), /enter another key in the credential/);
    return true;
  });
  Object.assign(access, { key: KEY, end: '' });
});

test('the package lists existing files, and has no dependencies', () => {
  const root = join(import.meta.dirname, '..');
  const manifest = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'));
  for (const path of [...manifest.n8n.nodes, ...manifest.n8n.credentials])
    assert.ok(existsSync(join(root, path)), path);
  for (const icon of ['flowhook.svg', 'flowhook.dark.svg'])
    assert.ok(existsSync(join(root, 'dist/icons', icon)), icon);
  assert.equal(manifest.dependencies, undefined);
  assert.deepEqual(manifest.peerDependencies, { 'n8n-workflow': '*' });
});
