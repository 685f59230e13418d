/** The whole life of a job, over HTTP: subscribe → queue → run → data → signed deliveries. */
import assert from 'node:assert/strict';
import { createPublicKey, verify } from 'node:crypto';
import { after, test } from 'node:test';
import { Webhook } from 'standardwebhooks';
import { startReceiver } from '../support/receiver.ts';
import { startService } from '../support/service.ts';

const people = (records: object[]) =>
  `source:\n  type: command\n  command: [printf, '%s\\n', ${records.map((one) => `'${JSON.stringify(one)}'`).join(', ')}]\n`;

const service = await startService({
  workflows: {
    'default/people.yaml': people([
      { id: 1, name: 'Ada', email: 'ada@example.com', born: 1815 },
      { id: 2, name: 'Grace', email: 'grace@example.com', born: 1906 },
    ]),
    'default/broken.yaml':
      "retries: { max: 0 }\nsource: { type: command, command: [sh, -c, 'echo no such host >&2; exit 7'] }\n",
    'default/empty.yaml': 'source: { type: command, command: [/bin/true] }\n',
    'default/invalid.yaml': `source: { type: command, command: [printf, '{"id":1}\\n{"name":"x"}\\n'] }\n`,
    'default/slow.yaml':
      "limits: { timeout: 100ms }\nsource: { type: command, command: [sh, -c, 'exec sleep 600'] }\n",
    'default/module.mts':
      'export const workflow = { name: "From a module" };\n' +
      'export default async function* (ctx) {\n' +
      '  const run = (ctx.state.get("runs") ?? 0) + 1;\n' +
      '  ctx.state.set("runs", run);\n' +
      '  yield { id: "only", name: "run " + run };\n' +
      '}\n',
  },
});
const receiver = await startReceiver();
after(async () => {
  await service.stop();
  await receiver.stop();
});

/** Queues a workflow and waits for the event that ends the job. */
async function runToItsEnd(
  workflowId: string,
): Promise<{ jobId: string; types: string[]; data: Record<string, unknown> }> {
  await service.call('POST', '/v1/integrations/webhooks/subscribe', {
    workflowId,
    webhookUrl: receiver.url,
    events: ['*'],
  });
  const queued = await service.call('POST', `/v1/workflows/${workflowId}/queue`);
  assert.equal(queued.status, 200);
  const jobId = queued.headers.get('x-job-id') ?? '';
  const ofJob = () => receiver.received.filter(({ event }) => event.jobId === jobId);
  const end = () => ofJob().find(({ event }) => /^workflow_(finished|failed)$/.test(event.type));
  await receiver.until(() => end() !== undefined, `the end of ${workflowId}`);
  // Deliveries can arrive out of order: they are sorted by sequence.
  const last = end()?.event;
  const before = await service.store.events.list({
    teamId: service.team.id,
    afterSequence: 0,
    limit: 10_000,
  });
  const mine = before.filter((event) => event.jobId === jobId);
  await receiver.until(() => ofJob().length === mine.length, `all events of ${workflowId}`);
  return { jobId, types: mine.map(({ type }) => type), data: last?.data ?? {} };
}

test('a run publishes its records and reports changes, and every delivery is signed', async () => {
  // Deliveries are also signed with the key of the team once somebody has read the public key.
  const keys = (await (
    await fetch(`${service.url}/.well-known/webhook-signing-keys/${service.team.id}`)
  ).json()) as {
    keys: { key: string }[];
  };
  const { jobId, types, data } = await runToItsEnd('people');
  assert.deepEqual(types, [
    'workflow_queued',
    'workflow_started',
    'workflow_data_change',
    'workflow_finished',
  ]);
  assert.deepEqual(data.records, { total: 2, added: 2, changed: 0, removed: 0 });
  assert.equal(data.version, 1);

  const read = await service.call('GET', '/v1/workflows/people/data');
  assert.deepEqual(read.body, [
    { id: '1', name: 'Ada', email: 'ada@example.com', born: 1815 },
    { id: '2', name: 'Grace', email: 'grace@example.com', born: 1906 },
  ]);
  assert.equal(data.dataUrl, `${service.url}/v1/workflows/people/data`);
  const job = (await service.call('GET', `/v1/jobs/${jobId}`)).body as Record<string, unknown>;
  assert.equal(job.state, 'finished');

  const list = (await service.call('GET', '/v1/integrations/webhooks/list?workflowId=people')).body as {
    webhooks: { id: string }[];
  };
  const secret = (await service.call('GET', `/v1/integrations/webhooks/${list.webhooks[0]?.id}/secret`))
    .body as {
    secret: string;
  };
  const mine = receiver.received.filter(({ event }) => event.jobId === jobId);
  assert.equal(mine.length, 4);
  for (const { headers, text } of mine) {
    new Webhook(secret.secret).verify(text, headers as Record<string, string>);
    const signed = `${headers['webhook-id']}.${headers['webhook-timestamp']}.${text}`;
    const signature = String(headers['webhook-signature'])
      .split(' ')
      .find((one) => one.startsWith('v1a,'));
    const publicKey = createPublicKey({
      key: {
        kty: 'OKP',
        crv: 'Ed25519',
        x: Buffer.from(keys.keys[0]?.key.slice('whpk_'.length) ?? '', 'base64').toString('base64url'),
      },
      format: 'jwk',
    });
    assert.ok(verify(null, Buffer.from(signed), publicKey, Buffer.from(signature?.slice(4) ?? '', 'base64')));
  }
});

test('a run without changes publishes no version and reports no change', async () => {
  const { types, data } = await runToItsEnd('people');
  assert.deepEqual(types, ['workflow_queued', 'workflow_started', 'workflow_finished']);
  assert.equal(data.version, 1);
  assert.deepEqual(data.records, { total: 2, added: 0, changed: 0, removed: 0 });
});

test('a failed run reports the reason, its exit code and its last output', async () => {
  const { types, data } = await runToItsEnd('broken');
  assert.deepEqual(types, ['workflow_queued', 'workflow_started', 'workflow_failed']);
  assert.equal(data.reason, 'error');
  assert.match(String(data.error), /7/);
  assert.match(String(data.error), /no such host/);
});

test('an empty run fails, so that it does not erase data', async () => {
  const { data } = await runToItsEnd('empty');
  assert.equal(data.reason, 'guard');
  assert.match(String(data.error), /expect\.records\.min/);
});

test('an invalid record fails the run with its position and the field', async () => {
  const { data } = await runToItsEnd('invalid');
  assert.equal(data.reason, 'invalid_record');
  assert.match(String(data.error), /Record 2 .*`id`/);
  assert.deepEqual((await service.call('GET', '/v1/workflows/invalid/data')).body, []);
});

test('a run that takes too long is stopped, and the error names the limit and the setting', async () => {
  const { data } = await runToItsEnd('slow');
  assert.equal(data.reason, 'timeout');
  assert.match(String(data.error), /0\.1 s.*`limits\.timeout`/);
});

test('a module keeps its state from one published run to the next', async () => {
  await runToItsEnd('module');
  await runToItsEnd('module');
  assert.deepEqual((await service.call('GET', '/v1/workflows/module/data')).body, [
    { id: 'only', name: 'run 2' },
  ]);
});
