/** The load of one team does not delay another team. Also: loops of webhooks end. */
import assert from 'node:assert/strict';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { after, before, test } from 'node:test';
import { SCOPES } from '../../src/model/team.ts';
import { mintKey } from '../../src/teams/keys.ts';
import { type Answer, startService, type TestService } from '../support/service.ts';
import { until } from '../support/until.ts';

let service: TestService;
/** A site whose `/drip` never ends. */
let site: Server;
let other: { 'x-api-key': string };

before(async () => {
  site = createServer((request, response) => {
    const isDrip = request.url === '/drip';
    response.writeHead(200, { 'content-type': 'application/x-ndjson' });
    response.write('{"id":"1"}\n');
    if (!isDrip) response.end();
  });
  await new Promise<void>((resolve) => site.listen(0, '127.0.0.1', resolve));
  service = await startService({ settings: { FLOWHOOK_MAX_RUNNING_JOBS: '2' } });
  const { id: teamId } = await service.store.teams.ensure({ slug: 'other' });
  const { key } = await mintKey(service.store, { teamId, name: 'test', scopes: SCOPES, expiresAt: null });
  other = { 'x-api-key': key };
});
after(async () => {
  await service.stop();
  site.closeAllConnections();
  site.close();
});

/** A call of the team `default`, or of the other team with its headers. */
async function call(method: string, path: string, body?: unknown, headers?: Record<string, string>) {
  const answer = await service.call(method, `/v1/${path}`, body, headers);
  assert.ok(answer.status < 400, `${method} ${path}: ${JSON.stringify(answer.body)}`);
  return answer;
}

const jobOf = ({ headers }: Answer) => headers.get('x-job-id') ?? '';

function reaches(job: string, state: string, headers?: Record<string, string>): Promise<true> {
  return until(`job ${job} is ${state}`, async () => {
    const { body } = await call('GET', `jobs/${job}`, undefined, headers);
    return (body as { state: string }).state === state;
  });
}

test('endless runs of one team leave a place for another team', async () => {
  const { port } = site.address() as AddressInfo;
  const source = (path: string) => ({
    source: { type: 'http', url: `http://127.0.0.1:${port}${path}`, parse: 'ndjson', robots: 'ignore' },
  });
  const jobs: string[] = [];
  for (const id of ['drip-0', 'drip-1']) {
    await call('PUT', `workflows/${id}`, source('/drip'));
    jobs.push(jobOf(await call('POST', `workflows/${id}/queue`)));
  }
  await reaches(jobs[0] as string, 'running');
  await call('PUT', 'workflows/mine', source('/'), other);
  for (const _ of [1, 2]) {
    await reaches(jobOf(await call('POST', 'workflows/mine/queue', undefined, other)), 'finished', other);
  }
  await reaches(jobs[1] as string, 'queued');
  for (const job of jobs) await call('POST', `jobs/${job}/cancel`);
});

test('a loop of webhooks through the service ends after five rounds', async () => {
  await call('PUT', 'workflows/round', { source: { type: 'push' }, mode: 'upsert', onInvalid: 'skip' });
  const subscribed = await call('POST', 'integrations/webhooks/subscribe', {
    workflowId: 'round',
    webhookUrl: `${service.url}/v1/workflows/round/queue`,
    events: ['workflow_finished'],
  });
  const push = (hops: string) =>
    service.call('POST', '/v1/workflows/round/push', [{ id: hops }], { 'flowhook-hops': hops });
  const webhook = subscribed.headers.get('x-webhook-id') ?? '';
  assert.equal((await push('5')).status, 200);
  const refused = await push('6');
  assert.deepEqual([refused.status, refused.headers.get('x-error-code')], [400, 'webhook_loop']);
  const changed = await service.call(
    'PUT',
    '/v1/workflows/x',
    { source: { type: 'push' } },
    {
      'flowhook-hops': '1',
    },
  );
  assert.match((changed.body as { error: string }).error, /can only queue jobs and push records/);
  const sent = await until('the event of the fifth push is delivered', async () => {
    const { body } = await call('GET', `integrations/webhooks/${webhook}/deliveries?limit=1`);
    const [delivery] = (body as { deliveries: { id: string }[] }).deliveries;
    const { body: whole } = await call('GET', `deliveries/${delivery?.id}`);
    return (
      (whole as { attempts: { request: { headers: Record<string, string> } | null }[] }).attempts[0]
        ?.request ?? undefined
    );
  });
  assert.equal(sent.headers['flowhook-hops'], '6');
});

test('the other operations of the contract ignore `flowhook-hops`', async () => {
  await call('PUT', 'workflows/plain', { source: { type: 'push' } });
  const hops = { 'flowhook-hops': '9' };
  const unsubscribed = await service.call(
    'DELETE',
    '/v1/integrations/webhooks/unsubscribe?webhookId=wh_x',
    undefined,
    hops,
  );
  assert.deepEqual(
    [unsubscribed.status, unsubscribed.headers.get('x-error-code')],
    [404, 'webhook_not_found'],
  );
  const subscription = {
    workflowId: 'plain',
    webhookUrl: `${service.url}/livez`,
    events: ['workflow_finished'],
  };
  await call('POST', 'integrations/webhooks/subscribe', subscription, hops);
  await call('GET', 'integrations/webhooks/list', undefined, hops);
});
