/** The service accepts the example requests in `openapi.json` if it has the data that they name. */
import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import { FEED_TOKEN } from '../../src/resources/examples.ts';
import { smtpReceiver } from '../support/mail/smtp-receiver.ts';
import { type Answer, startService } from '../support/service.ts';

interface Described {
  operationId: string;
  parameters?: { name: string; in: 'path' | 'query' | 'header'; required?: boolean; example: unknown }[];
  requestBody?: { required: boolean; content: Record<string, { example: unknown }> };
  responses: Record<string, object>;
}

type Json = Record<string, unknown>;

const smtp = await smtpReceiver();
const service = await startService({
  settings: {
    FLOWHOOK_SMTP_URL: `smtp://127.0.0.1:${smtp.port}`,
    FLOWHOOK_MAIL_FROM: 'flowhook@example.org',
  },
  workflows: {
    'default/quick.yaml': `source: { type: command, command: [printf, '{"id":1}\\n'] }\n`,
    // The examples of the quarantine name the records 16 and 17.
    'default/checked.yaml':
      'expect: { fields: { price: { min: 0 } }, otherwise: quarantine }\n' +
      `source: { type: command, command: [printf, '{"id":%s,"price":%s}\\n', '16', '-1', '17', '-1', '18', '1', '19', '1'] }\n`,
    'default/broken.yaml':
      'retries: { max: 10, backoff: 10m }\nsource: { type: command, command: [/bin/false] }\n',
  },
});
after(async () => {
  await service.stop();
  await smtp.close();
});
const { paths } = (await service.call('GET', '/openapi.json')).body as {
  paths: Record<string, Record<string, Described>>;
};

async function made(method: string, path: string, body?: unknown): Promise<Answer & { body: Json }> {
  const answer = await service.call(method, path, body);
  assert.equal(answer.status, 200, `${method} ${path}: ${JSON.stringify(answer.body)}`);
  return answer as Answer & { body: Json };
}

/** A job in this state. An ended job is returned only if no other job is unfinished. */
async function jobIn(workflowId: string, state: string): Promise<string> {
  for (;;) {
    const { body } = await made('GET', `/v1/jobs?workflowId=${workflowId}&state=${state}`);
    const [job] = body.jobs as { id: string }[];
    const { currentJob } = (await made('GET', `/v1/workflows/${workflowId}`)).body;
    if (job !== undefined && (state === 'retrying' || currentJob === null)) return job.id;
    if (job === undefined) await service.call('POST', `/v1/workflows/${workflowId}/queue`);
  }
}

/** Creates what the examples name for each request, because requests consume it. Returns real IDs by example ID. */
async function world(): Promise<[example: string, real: string][]> {
  await made('PUT', '/v1/workflows/people', { source: { type: 'push' } });
  const { body } = await made('GET', '/v1/workflows/people');
  for (let version = Number(body.version); version < 17; version++) {
    await made('POST', '/v1/workflows/people/push', [{ id: version, name: 'Ada', email: 'ada@example.com' }]);
  }
  const url = 'http://127.0.0.1:9/';
  const webhook = (await made('POST', '/v1/integrations/webhooks', { webhookUrl: url, events: ['*'] })).body;
  const sent = (await made('POST', `/v1/integrations/webhooks/${webhook.id}/test`)).body;
  const since = new Date(0).toISOString();
  const replay = (await made('POST', `/v1/integrations/webhooks/${webhook.id}/replay`, { since })).body
    .replay;
  const states = ['waiting', 'delivered', 'dead', 'canceled'];
  const { retry } = (await made('POST', '/v1/deliveries/retry', { states })).body;
  const { key } = (await made('POST', '/v1/keys')).body as { key: Json };
  const known = ((await made('GET', '/v1/inspectors')).body.inspectors as Json[])[0];
  const inspector = known ?? (await made('POST', '/v1/inspectors')).body;
  const feeds = '/v1/workflows/people/feeds';
  const knownFeed = ((await made('GET', feeds)).body.feeds as Json[])[0];
  const feed = knownFeed ?? (await made('POST', feeds)).body;
  const id = '01kadz8v3s7v0s8e1c3q5m2n4p';
  return [
    [FEED_TOKEN, new URL((feed.urls as { html: string }).html).pathname.replace('/feeds/', '')],
    [`feed_${id}`, String(feed.id)],
    [`wh_${id}`, String(webhook.id)],
    [`evt_${id}`, String(sent.eventId)],
    [`dlv_${id}`, String(sent.deliveryId)],
    [`rpl_${id}`, String((replay as Json).id)],
    [`rty_${id}`, String((retry as Json).id)],
    [`key_${id}`, String(key.id)],
    [`team_${id}`, service.team.id],
    [`job_${id}`, await jobIn('quick', 'finished')],
    ['insp_5f0c3b7d9a1e4c2f8b6d7a9e0c1f2b3d', String(inspector.id)],
  ];
}

/** Makes a webhook that sends mail. Returns its ID, and the path of a link in its mails. */
async function mailed(page: 'verify' | 'unsubscribe'): Promise<{ id: string; path: string }> {
  const hooks = '/v1/integrations/webhooks';
  const next = smtp.mails.length + 1;
  const { id } = (
    await made('POST', hooks, { webhookUrl: `mailto:a${next}@b.test`, events: ['workflow_failed'] })
  ).body;
  const linkIn = (text = '') => new URL(/http:\S+\/mail\/\S+/.exec(text)?.[0] ?? '').pathname;
  const path = linkIn((await smtp.mail(next)).mail.text);
  if (page === 'verify') return { id: String(id), path };
  await made('POST', path);
  await made('POST', `${hooks}/${id}/test`);
  return { id: String(id), path: linkIn((await smtp.mail(next + 1)).mail.text) };
}
const linked = (page: 'verify' | 'unsubscribe') => async (text: string) =>
  text.replace(/^[^?]+/, (await mailed(page)).path);

/** Workflows and jobs for operations that cannot use those of the examples. */
const OTHERWISE: Record<string, (text: string) => Promise<string>> = {
  verifyWebhook: async (text) => text.replace(/wh_\w+/, (await mailed('verify')).id),
  readVerification: linked('verify'),
  confirmAddress: linked('verify'),
  readUnsubscription: linked('unsubscribe'),
  endMails: linked('unsubscribe'),
  queueWorkflowJob: async (text) => text.replace('/people/', '/quick/'),
  cancelJob: async (text) => text.replace(/job_\w+/, await jobIn('broken', 'retrying')),
  readQuarantined: setAside,
  acceptQuarantine: setAside,
  runJobNow: async (text) => text.replace(/job_\w+/, await jobIn('broken', 'retrying')),
};

/** Names the workflow whose run has just set records aside. */
async function setAside(text: string): Promise<string> {
  await made('POST', '/v1/workflows/checked/queue');
  await jobIn('checked', 'finished');
  return text.replace('/people/', '/checked/');
}

/** Parameters that require another parameter. */
const NOT_ALONE = ['unsubscribeWebhook workflowId'];

/** Operations that never end, or whose status an inspector chooses. */
const LEFT_OUT = /^(openStream|inspect[A-Z]\w+)$/;

async function send(method: string, path: string, operation: Described, only?: string) {
  const { parameters = [], requestBody, operationId } = operation;
  const given = parameters.filter(({ name, required }) => required === true || name === only);
  const of = (place: string) => given.filter((one) => one.in === place);
  const filled = of('path').reduce(
    (text, { name, example }) => text.replace(`{${name}}`, String(example)),
    path,
  );
  const query = of('query').map(({ name, example }) => `${name}=${encodeURIComponent(String(example))}`);
  const headers = of('header').map(({ name, example }) => [name, String(example)] as const);
  const found = await world();
  const real = (text: string) => found.reduce((all, [example, id]) => all.replaceAll(example, id), text);
  const sent = [];
  // Optional bodies are omitted: they repeat the parameter.
  const bodies = only === undefined || requestBody?.required === true ? requestBody?.content : undefined;
  for (const [type, { example }] of Object.entries(bodies ?? { '': { example: undefined } })) {
    const text = type.endsWith('/json') ? JSON.stringify(example) : String(example ?? '');
    const target = real(`${filled}?${query.join('&')}`);
    const response = await fetch(service.url + ((await OTHERWISE[operationId]?.(target)) ?? target), {
      method: method.toUpperCase(),
      headers: {
        'x-api-key': service.key,
        ...(type === '' ? {} : { 'content-type': type }),
        ...Object.fromEntries(headers),
      },
      ...(type === '' ? {} : { body: real(text) }),
    });
    const what = `${operationId} ${only ?? ''} ${type}: ${response.status} ${(await response.text()).slice(0, 300)}`;
    assert.ok(response.status !== 400 && response.status < 500, what);
    assert.ok(String(response.status) in operation.responses, what);
    sent.push(response.status);
  }
  return sent;
}

for (const [path, methods] of Object.entries(paths)) {
  for (const [method, operation] of Object.entries(methods)) {
    const { operationId, parameters = [] } = operation;
    if (LEFT_OUT.test(operationId)) continue;
    test(`${operationId} accepts its examples`, async () => {
      const statuses = await send(method, path, operation);
      assert.ok(statuses.includes(200), `${statuses}`);
      for (const { name, required } of parameters) {
        const isSent = required === true || NOT_ALONE.includes(`${operationId} ${name}`);
        if (!isSent) await send(method, path, operation, name);
      }
    });
  }
}
